# gnuplot -c size.gp DATA PICTURE: see size.py. A block for each kind of model: its name, then size, our time, MuJoCo's [us].
set terminal svg size 900,640 font "sans,13" background "white"
set output ARG2
set multiplot layout 2,2 margins 0.09,0.98,0.09,0.95 spacing 0.1,0.14
set logscale xy
set format xy "10^{%L}"
set grid lc rgb "#dddddd"
set key top left
set ylabel "a step [us]"
do for [i = 0:3] {
  stats ARG1 index i every ::0::0 using (name = strcol(1), 0) nooutput
  set xlabel name
  plot ARG1 index i every ::1 using 1:3 with linespoints pt 7 ps 0.5 lw 2 lc rgb "#9a9a9a" title "MuJoCo", \
       ARG1 index i every ::1 using 1:2 with linespoints pt 7 ps 0.5 lw 2 lc rgb "#1f6fb4" title "sinew"
}
unset multiplot
