"""sinew.mujoco.step, stepping and converted models against MuJoCo's own steps."""

from __future__ import annotations

import copy
import gc
import threading
import warnings
import weakref
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import sinew
import sinew.mujoco
from sinew import _core
from sinew.errors import ArgumentError, DivergedError, StateError, UnsupportedError

from bodies import BALL, CUBE, MOCAP, body

# Of all that an MjData has: contacts, limits, friction, equalities, tendons, mocap bodies, cameras, lights.
MACHINE = """<mujoco>
  <option timestep="0.002" {option}><flag energy="enable"/></option>
  <worldbody>
    <light pos="0 0 3"/><camera name="still" pos="0 -2 1"/>
    <geom name="floor" type="plane" size="3 3 .1"/>
    <body name="cube" pos="0 0 .099" quat=".9 .1 .2 .3"><freejoint/>
      <geom name="cube" type="box" size=".1 .09 .08" mass="1" pos=".01 0 0" quat=".8 .2 0 .1" condim="4"
        friction="1 .02 .001"/>
      <site name="skin" type="box" size=".2 .2 .2" quat=".5 .1 .2 .3"/><camera name="riding" mode="track"/></body>
    <body name="arm" pos="1 0 1"><joint name="ball" type="ball" damping=".01"/>
      <geom type="capsule" fromto="0 0 0 .3 .1 -.2" size=".03"/><light pos="0 0 .1"/>
      <body name="forearm" pos=".3 .1 -.2">
        <joint name="hinge" axis="0 1 0" damping=".05" frictionloss=".02" range="-.1 .3" limited="true"/>
        <joint name="slide" type="slide" axis="1 0 0" stiffness="20" damping="1"/>
        <geom name="tip" type="capsule" fromto="0 0 0 .2 0 0" size=".02"/><site name="end" pos=".2 0 0"/></body></body>
    <site name="anchor" pos="1.3 .2 1.2"/>
    <body name="hand" mocap="true" pos="0 2 1"><geom type="sphere" size=".1" contype="0" conaffinity="0"/></body>
    <body name="load" pos="0 2 1.02"><freejoint/><geom type="box" size=".05 .05 .05" mass=".5"/></body>
  </worldbody>
  <tendon><spatial name="rope" limited="true" range="0 .4" frictionloss=".1" stiffness="3"><site site="anchor"/>
    <site site="end"/></spatial>
    <fixed name="mix"><joint joint="hinge" coef="1"/><joint joint="slide" coef="-.5"/></fixed></tendon>
  <equality><weld body1="hand" body2="load"/><tendon tendon1="mix" active="true"/></equality>
  <actuator><motor name="motor" joint="hinge"/><general tendon="rope" dyntype="filter" dynprm=".1" gainprm="2"/>
    <position joint="slide" kp="5"/></actuator>
  <sensor><touch site="skin"/><accelerometer site="end"/><gyro site="end"/><force site="end"/><torque site="skin"/>
    <jointpos joint="hinge"/><framequat objtype="geom" objname="cube"/><framequat objtype="site" objname="skin"/>
    <framequat objtype="body" objname="cube"/><framelinacc objtype="body" objname="forearm"/><tendonpos tendon="rope"/>
    <tendonlimitfrc tendon="rope"/><jointlimitfrc joint="hinge"/><actuatorfrc actuator="motor"/>
    <subtreeangmom body="arm"/><distance geom1="cube" geom2="tip" cutoff="9"/><e_potential/><clock/>
    <rangefinder site="end"/></sensor>
</mujoco>"""

# What is documented as not written.
UNWRITTEN = ("crb", "qH", "qHDiagInv", "qDeriv", "qLU", "efc_b")
STATISTICS = ("solver", "solver_nnz", "solver_fwdinv", "timer", "maxuse_", "parena", "signature", "bvh_active")
ISLANDS = ("island_", "iefc_", "ifrc_", "iacc", "efc_island", "dof_island", "tree_island", "map_", "nisland", "nidof")
DUAL = ("efc_Y", "efc_AR", "nY", "nA", "efm_", "nefm")
DENSE = ("efc_J_rownnz", "efc_J_rowadr", "efc_J_rowsuper", "efc_J_colind")


# With RK4 ours are of the whole step, and of its begin; MuJoCo's are of the last stage.
OF_STAGES = ("qacc", "act_dot", "energy")


def compared_fields(d: mujoco.MjData) -> list[str]:
    names = [name for name in dir(d) if not name.startswith("_") and not name.startswith(STATISTICS + ISLANDS + DUAL)]
    values = {name: getattr(d, name) for name in names if name not in (*UNWRITTEN, *DENSE, "narena", "nbuffer")}
    return [name for name, x in values.items() if isinstance(x, np.ndarray | float | int) and not isinstance(x, bool)]


def present(d: mujoco.MjData, name: str) -> np.ndarray:
    """Return an array, without entries of tendons' paths that there are not."""
    x = np.asarray(getattr(d, name), dtype=float)
    used = int(np.max(d.ten_wrapadr + d.ten_wrapnum, initial=0))
    return x.reshape(-1, 3)[:used] if name == "wrap_xpos" else x.ravel()[:used] if name == "wrap_obj" else x


def assert_same(got: mujoco.MjData, expected: mujoco.MjData, tolerance: float = 1e-6) -> None:
    for name in compared_fields(expected):
        if name in OF_STAGES and got.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
            continue
        a, b = present(got, name), present(expected, name)
        assert a.shape == b.shape, name
        worst = float(np.max(np.abs(a - b), initial=0)) / (float(np.max(np.abs(b), initial=0)) + 1e-6)
        assert worst <= tolerance, f"{name}: {worst:g}"
    for a, b in zip(got.contact, expected.contact, strict=True):
        for name in (
            "dist",
            "pos",
            "frame",
            "friction",
            "dim",
            "geom",
            "geom1",
            "geom2",
            "efc_address",
            "includemargin",
        ):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=tolerance, atol=tolerance, err_msg=name)


def machine(option: str = "") -> SimpleNamespace:
    m = mujoco.MjModel.from_xml_string(MACHINE.format(option=option))
    exact(m)
    return pair(m)


def exact(m: mujoco.MjModel) -> None:
    m.opt.tolerance, m.opt.ls_tolerance, m.opt.iterations = 0, 1e-12, 200
    m.opt.ccd_tolerance, m.opt.ccd_iterations = 1e-12, 200
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND  # with islands MuJoCo leaves efc_state as it was


def pair(m: mujoco.MjModel, seed: int = 1) -> SimpleNamespace:
    """Return an MjData that we move, and one that MuJoCo moves, in the same state."""
    d, reference, rng = mujoco.MjData(m), mujoco.MjData(m), np.random.default_rng(seed)
    d.qvel[:] = 0.3 * rng.normal(size=m.nv)
    d.act[:] = rng.uniform(0, 0.5, m.na)
    mujoco.mj_copyData(reference, m, d)
    return SimpleNamespace(m=m, d=d, reference=reference, rng=rng)


def advance(p: SimpleNamespace, nstep: int) -> None:
    p.d.ctrl[:] = p.rng.uniform(0.05, 0.95, p.m.nu)
    p.reference.ctrl[:] = p.d.ctrl
    sinew.mujoco.step(p.m, p.d, nstep)
    mujoco.mj_step(p.m, p.reference, nstep)


@pytest.mark.parametrize(
    "option", ["", 'cone="elliptic"', 'jacobian="sparse"', 'integrator="implicitfast"', 'integrator="RK4"']
)
def test_all_fields_are_those_of_mujoco(option: str) -> None:
    p = machine(option)
    rows = set()
    for nstep in (1, 1, 2, 5, 30, 1):
        advance(p, nstep)
        assert_same(p.d, p.reference)
        rows |= set(p.d.efc_type)
        mujoco.mj_copyData(p.d, p.m, p.reference)  # what follows does not depend on what was rounded before
    kinds = mujoco.mjtConstraint
    assert {kinds.mjCNSTR_EQUALITY, kinds.mjCNSTR_FRICTION_DOF, kinds.mjCNSTR_FRICTION_TENDON} <= rows
    assert rows & {kinds.mjCNSTR_CONTACT_PYRAMIDAL, kinds.mjCNSTR_CONTACT_ELLIPTIC}


@pytest.mark.parametrize("name", ["hand", "arm", "reach", "cube", "ball", "mocap"])
def test_bodies_move_as_in_mujoco(name: str) -> None:
    m = copy.copy(body(name).reference)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
    p = pair(m)
    for nstep in (1, 10, 3):
        advance(p, nstep)
        assert_same(p.d, p.reference, 1e-4 if name == "arm" else 1e-6)


def test_states_come_from_the_mjdata() -> None:
    p = machine()
    advance(p, 3)
    for d in (p.d, p.reference):
        d.time = 7
        d.qpos[:3] += 0.5
        d.mocap_pos[0] = [0.1, 2, 1.1]
        d.qacc_warmstart[:] = 0
    advance(p, 2)
    assert p.d.time == pytest.approx(7.004)
    assert_same(p.d, p.reference)


def test_functions_of_mujoco_go_on_from_our_fields() -> None:
    p = machine()
    advance(p, 40)
    for d in (p.d, p.reference):
        mujoco.mj_rnePostConstraint(p.m, d)
        mujoco.mj_subtreeVel(p.m, d)
    assert np.abs(p.reference.cfrc_ext).max() > 1
    for name in ("cfrc_ext", "cfrc_int", "cacc", "subtree_angmom"):
        np.testing.assert_allclose(getattr(p.d, name), getattr(p.reference, name), rtol=1e-5, atol=1e-5, err_msg=name)
    twin = copy.copy(p.d)
    assert_same(twin, p.d, 0)
    mujoco.mj_forward(p.m, p.d)
    mujoco.mj_forward(p.m, p.reference)
    assert_same(p.d, p.reference, 1e-5)


@pytest.mark.parametrize("option", ["", 'integrator="RK4"'])
def test_the_state_alone(option: str) -> None:
    p = machine(option)
    before = p.d.xpos.copy()
    sinew.mujoco.step(p.m, p.d, 7, fields=False)
    mujoco.mj_step(p.m, p.reference, 7)
    np.testing.assert_array_equal(p.d.xpos, before)
    for name in ("time", "qpos", "qvel", "act", "qacc_warmstart"):
        np.testing.assert_allclose(getattr(p.d, name), getattr(p.reference, name), rtol=1e-6, atol=1e-6, err_msg=name)
    for d in (p.d, p.reference):
        mujoco.mj_forward(p.m, d)
    assert_same(p.d, p.reference)
    assert np.abs(p.d.xpos - before).max() > 1e-3
    with pytest.raises(UnsupportedError):
        p.d.qfrc_applied[0] = 1
        sinew.mujoco.step(p.m, p.d, fields=False)


def test_unwritten_fields_are_marked() -> None:
    p = machine()
    mujoco.mj_step(p.m, p.d)
    sinew.mujoco.step(p.m, p.d)
    for name in UNWRITTEN:
        assert np.isnan(getattr(p.d, name)).all(), name
    assert p.d.nisland == 0


def test_no_steps() -> None:
    p = machine()
    before = copy.copy(p.d)
    sinew.mujoco.step(p.m, p.d, 0)
    assert_same(p.d, before, 0)
    with pytest.raises(ArgumentError, match="nstep"):
        sinew.mujoco.step(p.m, p.d, -1)


@pytest.mark.parametrize("name", ["qfrc_applied", "xfrc_applied", "eq_active"])
def test_inputs_that_there_are_not(name: str) -> None:
    p = machine()
    getattr(p.d, name).flat[0] = 0 if name == "eq_active" else 1
    with pytest.raises(UnsupportedError, match=name):
        sinew.mujoco.step(p.m, p.d)
    assert p.d.time == 0


def test_callbacks_are_refused() -> None:
    p = machine()
    mujoco.set_mjcb_passive(lambda m, d: None)
    try:
        with pytest.raises(UnsupportedError, match="callback"):
            sinew.mujoco.step(p.m, p.d)
    finally:
        mujoco.set_mjcb_passive(None)


@pytest.mark.parametrize("option", ["", 'integrator="RK4"'])
def test_divergence_leaves_the_mjdata_as_it_was(option: str) -> None:
    p = machine(option)
    advance(p, 2)
    state, d = mujoco.mjtState.mjSTATE_INTEGRATION, p.d
    before, after = np.empty((2, mujoco.mj_stateSize(p.m, state)))
    d.qvel[6:9] = 1e6
    mujoco.mj_getState(p.m, d, before, state)
    with pytest.raises(DivergedError):
        sinew.mujoco.step(p.m, d, 50)
    mujoco.mj_getState(p.m, d, after, state)
    np.testing.assert_array_equal(before, after)


def test_an_arena_that_is_too_small_has_no_contacts() -> None:
    m = mujoco.MjModel.from_xml_string(CUBE.replace("<mujoco>", '<mujoco><size memory="2K"/>').replace(".11", ".099"))
    d = mujoco.MjData(m)
    sinew.mujoco.step(m, d)
    assert d.ncon == d.nefc == 0
    assert d.warning[mujoco.mjtWarning.mjWARN_CONTACTFULL].number == 1
    assert d.qvel[2] > -9 * m.opt.timestep  # the contacts have acted all the same


def test_objects_of_other_kinds() -> None:
    m, other = mujoco.MjModel.from_xml_string(BALL), mujoco.MjModel.from_xml_string(CUBE)
    d = mujoco.MjData(m)
    model = sinew.mujoco.model_of(m)
    for bad in [(None, d), (m, None), (m, m), (d, d), (other, d)]:
        with pytest.raises(ArgumentError):
            sinew.mujoco.step(*bad)
    for bad in [(model._native, d, d), (model._native, m, m), (model._native, 5, d), (model._native, other, d)]:
        with pytest.raises(ArgumentError):
            _core.MujocoStepper(*bad)
    with pytest.raises(ArgumentError, match=r"Model\.from_mujoco makes one of an MjModel"):
        sinew.Data(m)
    with pytest.raises(ArgumentError, match="sizes"):
        _core.MujocoStepper(sinew.mujoco.model_of(other)._native, m, d)
    stepper = _core.MujocoStepper(model._native, m, d)
    for call in (stepper.finish, lambda *x: stepper.step(*x, 1)):
        with pytest.raises(ArgumentError):
            call(other, mujoco.MjData(other))
        with pytest.raises(TypeError):
            call(None, None)
    with pytest.raises(ArgumentError):
        stepper.step(m, d, 0)
    with pytest.raises(ArgumentError):
        _core.MujocoWatch(d, model._native)


def test_two_threads_on_one_mjdata() -> None:
    p = machine()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                sinew.mujoco.step(p.m, p.d, 60)
        except StateError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("another thread" in str(error) for error in failures)  # whether they meet is a matter of time
    assert np.isfinite(p.d.qpos).all()


def test_nothing_is_kept_of_what_is_gone() -> None:
    m = mujoco.MjModel.from_xml_string(BALL)
    d = mujoco.MjData(m)
    sinew.mujoco.step(m, d)
    model, data = weakref.ref(m), weakref.ref(d)
    del m, d
    gc.collect()
    assert data() is None and model() is None


# ---- models ----


def test_a_model_is_converted_once() -> None:
    p = machine()
    model = sinew.mujoco.model_of(p.m)
    assert sinew.mujoco.model_of(p.m) is model
    assert sinew.mujoco.model_of(copy.copy(p.m)) is not model
    sinew.mujoco.forget(p.m)
    assert sinew.mujoco.model_of(p.m) is not model


def edit_mass(m: mujoco.MjModel) -> None:
    m.body_mass[1] *= 3
    m.body_inertia[1] *= 3


def edit_options(m: mujoco.MjModel) -> None:
    m.opt.timestep, m.opt.gravity[0], m.opt.density = 0.004, 3, 0


def edit_size(m: mujoco.MjModel) -> None:
    m.geom_size[1] = [0.15, 0.1, 0.1]


def edit_type(m: mujoco.MjModel) -> None:
    m.geom_type[1] = mujoco.mjtGeom.mjGEOM_SPHERE


def edit_integrator(m: mujoco.MjModel) -> None:
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4


def edit_control(m: mujoco.MjModel) -> None:
    m.actuator_gainprm[0, 0], m.jnt_stiffness[2], m.site_pos[1] = 4, 5, [0.1, 0.1, 0]


@pytest.mark.parametrize("edit", [edit_mass, edit_options, edit_size, edit_type, edit_integrator, edit_control])
def test_an_edited_model_takes_effect(edit) -> None:
    p = machine()
    advance(p, 3)
    before = sinew.mujoco.model_of(p.m)
    edit(p.m)
    mujoco.mj_setConst(p.m, mujoco.MjData(p.m))
    mujoco.mj_copyData(p.d, p.m, p.reference)
    for nstep in (1, 20):
        advance(p, nstep)
        assert_same(p.d, p.reference, 1e-5)
    assert sinew.mujoco.model_of(p.m) is not before


def test_an_edit_that_is_taken_back() -> None:
    p = machine()
    kept = p.m.geom_type[1]
    first = sinew.mujoco.model_of(p.m)
    edit_type(p.m)
    assert sinew.mujoco.model_of(p.m) is not first
    p.m.geom_type[1] = kept
    assert sinew.mujoco.model_of(p.m) is first


def test_a_model_that_is_not_supported() -> None:
    cloth = '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1" radius=".01"/>'
    text = MOCAP.replace("<worldbody>", f"<worldbody>{cloth}")
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="flex"):
            sinew.mujoco.step(m, d)
    with sinew.mujoco.stepping(), pytest.warns(RuntimeWarning, match="flex"):
        mujoco.mj_step(m, d)
    assert d.time == m.opt.timestep
    with sinew.mujoco.stepping(), warnings.catch_warnings():
        warnings.simplefilter("error")
        mujoco.mj_step(m, d)  # said once


# ---- stepping ----


def test_stepping_ends() -> None:
    own = mujoco.mj_step
    with sinew.mujoco.stepping():
        assert mujoco.mj_step is not own
        with sinew.mujoco.stepping():
            pass
        assert mujoco.mj_step is not own
    assert mujoco.mj_step is own
    sinew.mujoco.use()
    assert mujoco.mj_step is not own
    sinew.mujoco.use(False)
    assert mujoco.mj_step is own


def test_stepping_is_ours() -> None:
    p = machine()
    with sinew.mujoco.stepping():
        mujoco.mj_step(p.m, p.d, nstep=3)
    assert np.isnan(p.d.crb).all()
    mujoco.mj_forward(p.m, p.d)
    with sinew.mujoco.stepping(fields=False):
        mujoco.mj_step(p.m, p.d)
    assert np.isfinite(p.d.crb).all()


@pytest.mark.parametrize("fields", [True, False])
def test_stepping_resets_as_mujoco_where_it_diverges(fields: bool) -> None:
    p = machine()
    for d in (p.d, p.reference):
        d.qvel[0] = np.nan
    with sinew.mujoco.stepping(fields=fields):
        mujoco.mj_step(p.m, p.d)
    mujoco.mj_step(p.m, p.reference)
    warning = mujoco.mjtWarning.mjWARN_BADQVEL
    assert p.d.warning[warning].number == p.reference.warning[warning].number == 1
    np.testing.assert_array_equal(p.d.qpos, p.reference.qpos)


# ---- environments ----


@pytest.mark.parametrize("name", ["Ant-v5", "Humanoid-v5", "InvertedPendulum-v5", "Hopper-v5"])
def test_environments_of_gymnasium(name: str) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    environment = gymnasium.make(name)
    environment.action_space.seed(0)
    actions = [environment.action_space.sample() for _ in range(8)]

    def run() -> list[tuple[np.ndarray, float]]:
        environment.reset(seed=3)
        return [environment.step(action)[:2] for action in actions]

    own = run()
    with sinew.mujoco.stepping(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        ours = run()
    for (a, reward), (b, expected) in zip(ours, own, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        assert reward == pytest.approx(expected, rel=1e-4, abs=1e-4)
