# gnuplot -c billiard.gp DATA PICTURE: see billiard.sh. Columns: velocity, cost, slope, slope with contacts from distance.
set terminal svg size 760,640 font "sans,13" background "white"
set output ARG2
set multiplot layout 3,1 margins 0.15,0.97,0.11,0.96 spacing 0.05
set xrange [-1.5:1.5]
set grid lc rgb "#dddddd"
set key top right
set format x ""
set ylabel "cost [m^2]"
plot ARG1 every ::1 using 1:2 with lines lw 2 lc rgb "#333333" notitle
set ylabel "slope"
plot ARG1 every ::1 using 1:3 with lines lw 5 lc rgb "#9ec9e8" title "gradient", \
     ARG1 every ::1 using 1:4 with lines lw 1.5 lc rgb "#c0392b" title "with contacts from distance"
set format x "%g"
set ylabel "slope, magnified"
set xlabel "sideways velocity of the cue ball [m/s]"
set yrange [-0.008:0.008]
plot ARG1 every ::1 using 1:3 with lines lw 5 lc rgb "#9ec9e8" notitle, ARG1 every ::1 using 1:4 with lines lw 1.5 lc rgb "#c0392b" notitle
unset multiplot
