# Picture of a closed-loop run: gnuplot -c report.gp DATA PICTURE TITLE NMEASURE NCONTROL
# DATA has a header line and the columns time, cost, measures, controls (sinew-plant --data).
data = ARG1
nmeasure = int(ARG4)
ncontrol = int(ARG5)
set terminal pngcairo noenhanced size 1000,1000 font "sans,11"
set output ARG2
set multiplot layout 3,1 title ARG3 font ",14" margins 0.10,0.97,0.07,0.92 spacing 0.06
set grid lc rgb "#dddddd"
set key top right
set format x ""
set ylabel "cost"
set yrange [0:*]
plot data using 1:2 with lines lw 2 lc rgb "#c1272d" notitle
set ylabel "tracked quantity"
plot for [k=1:nmeasure] data using 1:(column(2+k)) with lines lw 2 title columnheader(2+k)
set format x "%g"
set xlabel "time [s]"
set ylabel "controls"
unset key
set yrange [*:*]
plot for [k=1:ncontrol] data using 1:(column(2+nmeasure+k)) with lines lw 1 notitle
unset multiplot
