// A body that has all that a cost can look at, and terms that together look at all of it.
#ifndef SINEW_TESTS_PLANNER_COST_COST_BODY_H_
#define SINEW_TESTS_PLANNER_COST_COST_BODY_H_

static const char *const cost_body =
    "<mujoco><compiler angle='radian'/><option timestep='0.01'/><worldbody><site name='wall' pos='0 1 1'/>"
    "<body name='goal' mocap='true' pos='.3 0 .2' quat='.6 .8 0 0'><site name='goal' pos='.1 0 0'/></body>"
    "<body name='arm' pos='0 0 1'><joint name='hinge' axis='0 1 0' range='-.5 .5' limited='true'/>"
    "  <geom name='bar' type='capsule' fromto='0 0 0 0 0 -.4' size='.03' contype='0' conaffinity='0'/>"
    "  <site name='tip' pos='.1 .2 -.4' quat='.8 .6 0 0'/>"
    "  <body name='wrist' pos='0 0 -.4'><joint name='ball' type='ball'/><geom size='.05' contype='0' conaffinity='0'/>"
    "  <site name='palm' pos='0 .1 0'/><body name='plate' pos='.05 0 0' quat='.5 .5 .5 .5'>"
    "    <geom name='plate' type='box' size='.02 .02 .02' pos='0 0 .1' quat='0 .6 .8 0' contype='0' "
    "conaffinity='0'/></body>"
    "  </body></body>"
    "<body name='slider' pos='1 0 0'><joint name='slide' type='slide' axis='0 0 1'/><joint name='turn' axis='1 0 0'/>"
    "  <geom size='.1' pos='.1 .1 0' contype='0' conaffinity='0'/><body pos='.2 0 0'><joint name='ball2' type='ball'/>"
    "  <geom size='.05' pos='.05 0 0' contype='0' conaffinity='0'/></body></body>"
    "<body name='cube' pos='.5 0 1'><joint name='free' type='free'/><geom name='cube' type='box' size='.1 .1 .1' "
    "contype='0' conaffinity='0'/><site name='corner' pos='.1 .1 .1'/></body></worldbody>"
    "<tendon><spatial name='cord'><site site='tip'/><site site='corner'/></spatial><fixed name='sum'><joint "
    "joint='hinge' coef='2'/><joint joint='turn' coef='-1'/></fixed></tendon>"
    "<actuator><muscle name='flexor' tendon='cord' lengthrange='.1 2' force='1'/><motor name='motor' joint='hinge' "
    "ctrlrange='-3 3' gear='2'/><position name='servo' joint='turn' kp='3' kv='.2'/></actuator>"
    "<sensor><framepos name='where' objtype='site' objname='palm' reftype='body' refname='cube'/>"
    "<framequat name='turned' objtype='body' objname='plate' reftype='site' refname='corner'/>"
    "<framequat name='upright' objtype='geom' objname='plate'/><velocimeter name='drift' site='palm'/>"
    "<subtreelinvel name='run' body='arm'/>"
    "<jointvel name='speed' joint='hinge'/><actuatorfrc name='push' actuator='servo'/><actuatorfrc name='pull' "
    "actuator='flexor'/><jointlimitfrc name='stop' joint='hinge'/><tendonvel name='reel' tendon='cord'/>"
    "<tendonpos name='span' tendon='cord'/><actuatorvel name='rate' actuator='flexor'/>"
    "<accelerometer name='shake' site='palm'/><force name='load' site='palm'/><insidesite name='inside' objtype='site' "
    "objname='tip' site='corner'/></sensor></mujoco>";

// Lists terms: every quantity that has a gradient, every kind of target.
static const char *const cost_quantity[] = {
    "residual: {position: {site: palm}}, target: [.1, .2, .3]",
    "residual: {position: {body: plate}}, target: {value: [.1, -.2, .3], frame: cube}",
    "residual: {position: {geom: plate}}, target: {position: {site: corner}}",
    "residual: {position: {body: cube}}, target: {position: {body: wrist}, at: start, frame: arm}",
    "residual: {position: {site: tip}}, target: {value: [0, .1, .1], frame: goal}",
    "residual: {orientation: {site: tip}}",
    "residual: {orientation: {body: plate}}, target: {value: [.6, 0, .8, 0]}",
    "residual: {orientation: {geom: plate}}, target: {orientation: {body: cube}}",
    "residual: {orientation: {body: cube}}, target: {orientation: {site: palm}, at: start, frame: wrist}",
    "residual: {position: {site: palm}, axis: z}, target: .4",
    "residual: {position: {geom: plate}, axis: [z, x]}, target: {position: {site: corner}}",
    "residual: {position: {site: tip}, axis: y}, target: {position: {body: cube}, axis: x, at: start}",
    "residual: {sensor: where, axis: [x, y]}, target: [.1, .2]",
    "residual: {velocity: {site: palm}}, target: [.1, .2, .3]",
    "residual: {velocity: {body: plate}}, target: {value: [.3, -.2, .1], frame: cube}",
    "residual: {velocity: {geom: plate}, axis: [x, z]}, target: {velocity: {site: corner}, axis: [y, z]}",
    "residual: {angular_velocity: {site: tip}}, target: {angular_velocity: {body: wrist}}",
    "residual: {angular_velocity: {body: cube}}, target: {angular_velocity: {geom: plate}, at: start, frame: wrist}",
    "residual: {angular_velocity: {geom: plate}, axis: z}, target: {joint_velocity: turn}",
    "residual: {position: {sites: [palm, tip, corner]}}, target: [.1, .2, .3]",
    "residual: {position: {bodies: [cube, arm]}, axis: [y, z]}, target: {position: {geoms: [plate, cube]}}",
    "residual: {velocity: {geoms: [plate, cube]}}, target: {value: [.1, .2, .3], frame: arm}",
    "residual: {velocity: {site: tip}}, target: {velocity: {bodies: [plate, cube, plate]}}",
    "residual: {distance: [{site: palm}, {body: cube}]}, target: .3",
    "residual: {distance: [{site: palm}, {body: cube}]}, target: {distance: [{geom: plate}, {site: wall}]}",
    "residual: {joint_position: all}, target: [.5, 1, 0, 0, 0, .2, .1, .8, .6, 0, 0]",
    "residual: {joint_position: [ball]}, target: {joint_position: [ball2]}",
    "residual: {joint_position: [hinge, turn, hinge]}, target: {joint_position: [turn, hinge, slide]}",
    "residual: {joint_velocity: all}",
    "residual: {activation: all}",
    "residual: {control: all}, target: [.1, .2, .3]",
    "residual: {control_rate: [motor, servo, motor]}, target: [.1, .2, .3]",
    "residual: {control_rate: [motor, servo]}, target: {control_rate: [flexor, motor]}",
    "residual: {control: [servo, motor]}, target: {control_rate: [servo, flexor]}",
    "residual: {tendon_length: [cord, sum]}",
    "residual: {sensor: where}",
    "residual: {sensor: turned}",
    "residual: {sensor: upright}, target: {sensor: turned}",
    "residual: {sensor: drift}",
    "residual: {sensor: run, axis: [x, z]}, target: [.2, .1]",
    "residual: {sensor: speed}",
    "residual: {sensor: push}",
    "residual: {sensor: pull}",
    "residual: {sensor: reel}",
    "residual: {sensor: span}",
    "residual: {sensor: rate}",
    "residual: {sensor: push}, target: {sensor: pull}",
    "residual: {sensor: shake}, target: [1, 2, 3]",
    "residual: {sensor: load, axis: z}, target: {sensor: push}",
    "residual: {position: {site: palm}}, gate: {residual: {position: {site: tip}, axis: z}, above: .6, width: .2}",
    "residual: {orientation: {body: plate}}, gate: {residual: {position: {body: cube}}, target: {value: [.1, 0, 0], "
    "frame: arm}, norm: euclidean, below: .5, width: .3}",
    "residual: {joint_velocity: [hinge, turn]}, gate: {residual: {orientation: {geom: plate}}, target: {orientation: "
    "{body: cube}}, norm: squared, weights: [1, 2, .5]}",
    "residual: {distance: [{site: palm}, {body: cube}]}, gate: {residual: {velocity: {site: tip}, axis: [x, y]}, "
    "norm: squared, side: above, above: .2, width: .4}",
    "residual: {joint_position: slide}, target: .2, gate: {residual: {control_rate: servo}, below: 1, width: 2}",
    "residual: {tendon_length: cord}, gate: {residual: {sensor: push}, target: {control: motor}, above: .1, width: 3}"};
enum { COST_QUANTITIES = sizeof cost_quantity / sizeof *cost_quantity };

#endif
