# Picture of closed-loop runs side by side:
#   gnuplot -c report.gp FOLDER RUN OTHER PICTURE TITLE NMEASURE NCONTROL
# FOLDER/RUN and FOLDER/OTHER have a header line and the columns time, cost, measures, controls (sinew-plant --data). OTHER
# may be empty. Both columns of the picture have the same scales.
folder = ARG1
nmeasure = int(ARG6)
ncontrol = int(ARG7)
nrun = ARG3 eq "" ? 1 : 2
array name[2] = [ARG2, ARG3]
data(k) = folder."/".name[k]

# The largest cost and tracked quantity of all runs.
top_cost = 0
top_measure = 0
do for [k=1:nrun] {
  stats data(k) using 2 nooutput
  top_cost = STATS_max > top_cost ? STATS_max : top_cost
  do for [i=1:nmeasure] {
    stats data(k) using (column(2+i)) nooutput
    top_measure = STATS_max > top_measure ? STATS_max : top_measure
  }
}

set terminal pngcairo noenhanced size (nrun == 1 ? 1000 : 1500),1000 font "sans,11"
set output ARG4
set multiplot layout 3,nrun title ARG5 font ",14" margins 0.07,0.98,0.06,0.90 spacing 0.06,0.06
set grid lc rgb "#dddddd"
set key top right
set format x ""
do for [k=1:nrun] {
  set title name[k]
  set ylabel k == 1 ? "cost" : ""
  set yrange [0:1.05*top_cost]
  plot data(k) using 1:2 with lines lw 2 lc rgb "#c1272d" notitle
}
unset title
do for [k=1:nrun] {
  set ylabel k == 1 ? "tracked quantity" : ""
  set yrange [0:1.05*top_measure]
  plot for [i=1:nmeasure] data(k) using 1:(column(2+i)) with lines lw 2 title columnheader(2+i)
}
set format x "%g"
set xlabel "time [s]"
unset key
set yrange [*:*]
do for [k=1:nrun] {
  set ylabel k == 1 ? "controls" : ""
  plot for [i=1:ncontrol] data(k) using 1:(column(2+nmeasure+i)) with lines lw 1 notitle
}
unset multiplot
