# Picture of closed-loop runs side by side:
#   gnuplot -c report.gp FOLDER RUN OTHER PICTURE TITLE NMEASURE NCONTROL [AGES]
# FOLDER/RUN and FOLDER/OTHER have a header line and the columns time, cost, measures, controls, age of the plan in force,
# and others that are not drawn (sinew-plant --data). OTHER may be empty. Ages are drawn where AGES is given. Both columns of the picture have the same
# scales of cost and tracked quantity, logarithmic. A PICTURE that ends with .svg is a small drawing, of some 200 points a
# line without a grid; any other one is PNG.
folder = ARG1
nmeasure = int(ARG6)
ncontrol = int(ARG7)
nrun = ARG3 eq "" ? 1 : 2
nrow = ARG8 eq "" ? 3 : 4
array name[2] = [ARG2, ARG3]
data(k) = folder."/".name[k]

# The scales of cost and tracked quantity: at most five decades below the largest number of all runs.
top_cost = low_cost = top_measure = low_measure = NaN
larger(a, b) = a > b ? a : b
smaller(a, b) = a < b ? a : b
positive(x) = x > 1e-12 ? x : 1e-12
do for [k=1:nrun] {
  stats data(k) using (positive(column(2))) nooutput
  top_cost = k == 1 ? STATS_max : larger(STATS_max, top_cost)
  low_cost = k == 1 ? STATS_min : smaller(STATS_min, low_cost)
  do for [i=1:nmeasure] {
    stats data(k) using (positive(column(2+i))) nooutput
    first = k == 1 && i == 1
    top_measure = first ? STATS_max : larger(STATS_max, top_measure)
    low_measure = first ? STATS_min : smaller(STATS_min, low_measure)
  }
}
low_cost = larger(low_cost, 1e-5 * top_cost)
low_measure = larger(low_measure, 1e-5 * top_measure)

width = nrun == 1 ? 1000 : 1500
svg = ARG4[strlen(ARG4)-3:*] eq ".svg"
thin = 1
if (svg) {
  stats data(1) using 1 nooutput
  thin = ceil(STATS_records / 200.0)
  set terminal svg noenhanced size 2*width/3,667*nrow/3 font "sans,11" background "white"
} else {
  set terminal pngcairo noenhanced size width,1000*nrow/3 font "sans,11"
}
set output ARG4
set tics nomirror
if (!svg) { set grid lc rgb "#dddddd" }
set multiplot layout nrow,nrun title ARG5 font ",14" margins 0.08,0.98,0.09,0.90 spacing 0.06,0.06
set key top right
set logscale y
set format y "%.0e"
set format x ""
# A scale of little more than a decade has tics between powers of ten, of which it may have none.
between = ""
do for [power=-12:9] {
  do for [step in "1 1.5 2 3 5 7"] {
    between = between.(between eq "" ? "" : ", ").sprintf("'%g' %g", step*10.0**power, step*10.0**power)
  }
}
tics(low, high) = high > 30*low ? "set ytics autofreq" : "set ytics (".between.")"
eval(tics(low_cost, top_cost))
do for [k=1:nrun] {
  set title name[k]
  set ylabel k == 1 ? "cost" : ""
  set yrange [0.8*low_cost:1.5*top_cost]
  plot data(k) every thin using 1:(positive(column(2))) with lines lw 2 lc rgb "#c1272d" notitle
}
unset title
eval(tics(low_measure, top_measure))
do for [k=1:nrun] {
  set ylabel k == 1 ? "tracked quantity" : ""
  set yrange [0.8*low_measure:1.5*top_measure]
  plot for [i=1:nmeasure] data(k) every thin using 1:(positive(column(2+i))) with lines lw 2 title columnheader(2+i)
}
unset logscale y
set ytics autofreq
set format y "%g"
unset key
set yrange [*:*]
if (nrow == 3) {
  set format x "%g"
  set xlabel "time [s]"
}
do for [k=1:nrun] {
  set ylabel k == 1 ? "controls" : ""
  plot for [i=1:ncontrol] data(k) every thin using 1:(column(2+nmeasure+i)) with lines lw 1 notitle
}
set format x "%g"
set xlabel "time [s]"
set yrange [0:*]
do for [k=1:nrun] {
  if (nrow == 3) { break }
  set ylabel k == 1 ? "age of the plan in force [ms]" : ""
  plot data(k) every thin using 1:(1e3*column(3+nmeasure+ncontrol)) with lines lw 1 lc rgb "#1b6ca8" notitle
}
unset multiplot
