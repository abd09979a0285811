# gnuplot -c load.gp DATA PICTURE: see load.sh. DATA has a line a stage: load, asked, planned, warm [1/s], p50, p99 [ms], deadline [ms].
set terminal svg size 900,380 font "sans,13" background "white"
set output ARG2
set multiplot layout 1,2 margins 0.1,0.98,0.2,0.95 spacing 0.12,0.1
set logscale x
set grid lc rgb "#dddddd"
set xlabel "plans asked for, in plans that can be made"
set yrange [0:*]
set key at graph 0.98, graph 0.3
set ylabel "a second"
plot ARG1 using 1:3 with linespoints pt 7 lw 2 lc rgb "#1f6fb4" title "refined plans", \
     ARG1 using 1:4 with linespoints pt 7 lw 2 lc rgb "#9a9a9a" title "plans without time to refine"
set key at graph 0.98, graph 0.3
set offsets 0, 0, 5, 0
set ylabel "latency of a refined plan [ms]"
plot ARG1 using 1:7 with lines dt 2 lw 2 lc rgb "#c44e2b" title "deadline", \
     ARG1 using 1:6 with linespoints pt 7 lw 2 lc rgb "#1f6fb4" title "99 % within", \
     ARG1 using 1:5 with linespoints pt 7 lw 2 lc rgb "#9a9a9a" title "50 % within"
unset multiplot
