# gnuplot -c soak.gp DATA PICTURE: see soak.py. DATA has a line a sample: hours, resident, anonymous [MiB], descriptors, threads;
# an empty line between two pieces.
set terminal svg size 900,380 font "sans,13" background "white"
set output ARG2
set multiplot layout 1,2 margins 0.08,0.98,0.15,0.95 spacing 0.1,0.1
set grid lc rgb "#dddddd"
set xlabel "hours"
set xrange [0:*]
set yrange [0:*]
set key bottom right
set ylabel "memory [MiB]"
plot ARG1 using 1:2 with lines lw 2 lc rgb "#1f6fb4" title "resident", \
     ARG1 using 1:3 with lines lw 2 lc rgb "#9a9a9a" title "of it anonymous"
set ylabel "at rest"
plot ARG1 using 1:4 with lines lw 2 lc rgb "#1f6fb4" title "descriptors", \
     ARG1 using 1:5 with lines lw 2 lc rgb "#c44e2b" title "threads"
unset multiplot
