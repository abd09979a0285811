# gnuplot -c device.gp PICTURE FOLDER "LINES LINES LINES LINES": data of four panels, FOLDER/0.dat to 3.dat. See device.py.
set terminal svg size 1200,1000 font "sans,12" background "white"
set output ARG1
set multiplot layout 2,2 margins 0.07,0.98,0.15,0.97 spacing 0.1,0.21
set logscale xy
set format y "10^{%L}"
set grid lc rgb "#dddddd"
set key at graph 0.5, graph -0.2 center top vertical maxrows 5 font "sans,9" samplen 2 width -2
x = "'worlds at once' 'gradients at once' 'at once' 'threads a block'"
y = "'steps a second' 'gradients a second' 'times as fast as the CPU on all threads' 'steps a second of the most worlds'"
do for [p = 1:4] {
  lines = int(word(ARG3, p))
  data = sprintf("%s/%d.dat", ARG2, p - 1)
  set xlabel word(x, p)
  set ylabel word(y, p)
  if (lines > 0) {
    plot for [i = 0:lines - 1] data index i using 1:2 with linespoints pt 7 ps 0.5 lw 1.5 lc i % 8 + 1 dt i / 8 + 1 title columnheader(1)
  } else {
    set label 1 "no results" at graph 0.5, graph 0.5 center
    plot [1:10] [1:10] NaN notitle
    unset label 1
  }
}
unset multiplot
