"""Models: all of a body that stays the same while it moves."""

from __future__ import annotations

import functools
import os
import tempfile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew import _core
from sinew._arrays import row
from sinew.errors import ArgumentError, NotFoundError
from sinew.named import KINDS, Named, Table, View, model_table, object_id
from sinew.names import did_you_mean
from sinew.options import Options, changes_of

__all__ = ["Model", "SensorSupport"]


class SensorSupport(NamedTuple):
    """What the engine can do with a sensor. Others have the value NaN."""

    supported: bool  # computes its value
    differentiable: bool  # computes its derivative, too


def not_a_model(name: str, x: Any) -> ArgumentError:
    """Return the error for `x` where a model is expected, which says how to get one."""
    kind = type(x).__name__
    hint = f"; Model.from_mujoco makes one of an {kind}" if kind in ("MjModel", "MjSpec") else ""
    hint = "; Model.from_xml reads a file" if isinstance(x, str | os.PathLike) else hint
    return ArgumentError(f"{name}: {kind}, expected a sinew.Model{hint}")


class Model(Named):
    """A model of a body, read-only: any number of threads may use one at once.

    Make one with `from_xml`, `from_string`, `from_mujoco`, `load` or `read`. Sizes (`nq`, `nu`, ...) and arrays
    (`qpos0`, `jnt_range`, `body_mass`, ...; `fields` lists them) are attributes with MuJoCo's names and shapes. Arrays
    are views without a copy that cannot be written, and keep the model alive. They have what MuJoCo's compiler has
    made, but for two things: frames of bodies' inertias, geoms and sites that MuJoCo finds equal to one of the body are
    that one, and meshes that nothing can touch have no vertices.

    Attributes
    ----------
    nq, nv, na, nu : int
        Numbers of positions, degrees of freedom, activations and controls.
    nbody, njnt, ngeom, nsite, ntendon, nactuator, neq, nmocap, nkey : int
        Numbers of bodies, joints, geoms, sites, tendons, actuators, equalities, mocap bodies and keyframes.
    nsensor, nsensordata : int
        Number of sensors, and of all of their numbers.
    nstate : int
        2 nv + na: numbers of a state by its tangent.
    nhistory : int
        Numbers of the buffers of controls and sensors, of a model with delays or sample intervals, then nplastic.
    nplastic : int
        Numbers of the rests of springs that yield (springyield).
    """

    _native: _core.Model
    nq: int
    nv: int
    na: int
    nu: int
    nbody: int
    njnt: int
    ngeom: int
    nsite: int
    ntendon: int
    nactuator: int
    neq: int
    nmocap: int
    nkey: int
    nsensor: int
    nsensordata: int
    nstate: int
    nhistory: int
    nplastic: int

    def __init__(self) -> None:
        raise TypeError("use Model.from_xml, from_string, from_mujoco, load or read")

    @classmethod
    def _wrap(cls, native: _core.Model) -> Model:
        model = cls.__new__(cls)
        model.__dict__.update(native.sizes(), _native=native)
        return model

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Load a model from a file: MJCF, a compiled model (.mjb), or an image of `save`.

        MJCF is compiled once and kept in the user's cache (``$XDG_CACHE_HOME/sinew/models`` or
        ``~/.cache/sinew/models``), from where it loads in about a millisecond as long as its files stay the same.

        Raises
        ------
        NotFoundError, FileError
            There is no such file, or it cannot be read.
        FormatError
            MuJoCo's compiler refuses it, or an image is damaged.
        UnsupportedError
            It uses what the engine does not have: a list of all of it.
        """
        return cls._wrap(_core.Model.load(os.fsdecode(path)))

    from_xml = load

    @classmethod
    def read(cls, data: bytes, folder: str | os.PathLike[str] | None = None) -> Model:
        """Load a model from bytes of any of the three forms that `load` reads.

        They count as those of a file in `folder` (None: the current one), from where MJCF's includes and meshes are
        found. Raises as `load`.
        """
        return cls._wrap(_core.Model.read(bytes(data), None if folder is None else os.fsdecode(folder)))

    @classmethod
    def from_string(cls, xml: str, folder: str | os.PathLike[str] | None = None) -> Model:
        """Load a model from a text of MJCF, as of a file in `folder`. Raises as `load`."""
        if not isinstance(xml, str):
            raise ArgumentError(f"xml: {type(xml).__name__}, expected a text; from_xml reads a file, read takes bytes")
        return cls.read(xml.encode(), folder)

    @classmethod
    def from_mujoco(cls, model: Any) -> Model:
        """Make a model of one of MuJoCo's, with all its present numbers.

        Parameters
        ----------
        model : mujoco.MjModel or mujoco.MjSpec
            Of MuJoCo 4.0.0. A specification is compiled.

        Raises
        ------
        UnsupportedError
            It uses what the engine does not have: a list of all of it.
        """
        import mujoco

        if isinstance(model, mujoco.MjSpec):
            model = model.compile()
        if not isinstance(model, mujoco.MjModel):
            raise ArgumentError(f"model: {type(model).__name__}, expected a mujoco.MjModel or a mujoco.MjSpec")
        buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, buffer)
        return cls.read(buffer.tobytes())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an image of the model to a file, which `load` reads. It keeps every bit of the model.

        A build of another version may refuse it.

        Raises
        ------
        FileError
            It cannot be written, or what is there is no regular file.
        """
        self._native.save(os.fsdecode(path))

    def fields(self) -> list[str]:
        """Return the names of all arrays of the model."""
        return self._native.fields()

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        array = self._native.array(name)
        if array is None:
            raise AttributeError(f"a Model has no {name!r}{did_you_mean(name, dir(self))}")
        # Vectors have one axis. Keyframes are rows, however short.
        keyframes = name.startswith("key_") and name != "key_time"
        value: NDArray[Any] = array[:, 0] if array.shape[1] == 1 and not keyframes else array
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: a Model cannot be changed; with_options and replace make others")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.fields()})

    def __repr__(self) -> str:
        sizes = ("nq", "nv", "na", "nu", "nbody", "ngeom", "nsensordata")
        return f"<sinew.Model {', '.join(f'{name}={getattr(self, name)}' for name in sizes)}>"

    @property
    def ctrl_range(self) -> NDArray[np.float64]:
        """Ranges of the controls, (nu, 2); infinite where a control has none."""
        return self._native.ctrl_range()

    # ---- options ----

    @property
    def opt(self) -> Options:
        """Options of the model."""
        return Options(**self._native.options())

    def with_options(self, **changes: float | str | ArrayLike) -> Model:
        """Return a copy of the model with other options.

        Parameters
        ----------
        **changes
            Members of `Options`. `integrator` and `cone` also by name: "euler", "rk4", "implicit", "implicitfast",
            "discrete"; "pyramidal", "elliptic". `contact_solref` (2) and `contact_solimp` (5) replace those of all
            geoms and pairs; a number that is NaN leaves theirs.

        Raises
        ------
        ArgumentError
            There is no such option, or a value is out of range.
        UnsupportedError
            An integrator or flags that the engine does not have.
        """
        return self._wrap(self._native.with_options(changes_of(changes)))

    def replace(self, **arrays: ArrayLike) -> Model:
        """Return a copy of the model with other numbers in some arrays: masses, sizes, gains, ranges and the like.

        It moves as MuJoCo does after the same numbers were written into its ``MjModel``, but frames act as they are
        given (MuJoCo's ``sameframe``), and what follows from masses, flags and sizes of primitive geoms is made anew.
        Constants of the dynamics at ``qpos0`` (`dof_M0`, `dof_invweight0`, `body_invweight0`, `tendon_length0`,
        `tendon_invweight0`, `actuator_acc0`) stay unless they are given, too; `with_constants` makes them anew.

        Parameters
        ----------
        **arrays
            Arrays of the model by name, each in its shape: ``model.replace(body_mass=2 * model.body_mass)``.

        Raises
        ------
        NotFoundError
            There is no array of this name.
        ArgumentError
            A shape, or a number that is not allowed: its place.
        UnsupportedError
            An array that cannot be replaced: the reason.
        """
        fields = self.fields()
        for name in arrays:
            if name not in fields:
                raise NotFoundError(f"a Model has no array {name!r}{did_you_mean(name, fields)}")
        given = [(name, row(name, value, *getattr(self, name).shape)) for name, value in arrays.items()]
        return self._wrap(self._native.with_arrays(given))

    def with_constants(self) -> Model:
        """Return a copy with the constants that the other numbers give at ``qpos0``, as ``mj_setConst`` makes them."""
        return self._wrap(self._native.with_constants())

    # ---- names ----

    def names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind ("body", "joint", ..., "equality"), "" where one has none."""
        if kind not in KINDS:
            raise ArgumentError(f"kind: {kind!r}, expected one of {', '.join(KINDS)}")
        number = KINDS.index(kind)
        return [self._native.name(number, i) for i in range(self._native.count(number))]

    def keyframe(self, key: str | int) -> View:
        """Return the numbers of the keyframe of this name or index."""
        return View(self, "keyframe", key)

    def equality(self, key: str | int) -> View:
        """Return the numbers of the equality of this name or index."""
        return View(self, "equality", key)

    @property
    def _named_model(self) -> Model:
        return self

    def _named_table(self) -> Table:
        return self._table

    @functools.cached_property
    def _table(self) -> Table:
        return model_table(self.fields())

    def _named_array(self, field: str, write: bool) -> NDArray[Any]:
        if write:
            raise AttributeError(f"{field}: a Model cannot be changed")
        array: NDArray[Any] = getattr(self, field)
        return array

    def sensor_support(self, key: str | int) -> SensorSupport:
        """Return what the engine can do with the sensor of this name or index."""
        return SensorSupport(*self._native.sensor(object_id(self, "sensor", key)))

    # ---- tangents ----

    def integrate(self, qpos: ArrayLike, tangent: ArrayLike, scale: float = 1.0) -> NDArray[np.float64]:
        """Move positions along a tangent, as ``mj_integratePos``.

        Parameters
        ----------
        qpos : array_like, (nq,)
            Positions.
        tangent : array_like, (nv,)
            Direction, e.g. a velocity; quaternions count 3.
        scale : float
            Factor of the tangent, e.g. a time [s].

        Returns
        -------
        array, (nq,)
            Positions with quaternions of unit length.
        """
        moved = np.empty(self.nq)
        self._native.integrate(row("qpos", qpos, self.nq), row("tangent", tangent, self.nv), scale, moved)
        return moved

    def difference(self, qpos1: ArrayLike, qpos2: ArrayLike) -> NDArray[np.float64]:
        """Return the tangent (nv,) that leads from `qpos1` to `qpos2` (nq,), the shorter way round for rotations.

        As ``mj_differentiatePos`` for a time of 1.
        """
        tangent = np.empty(self.nv)
        self._native.difference(row("qpos1", qpos1, self.nq), row("qpos2", qpos2, self.nq), tangent)
        return tangent

    # ---- copies ----

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory(prefix="sinew-") as folder:
            path = os.path.join(folder, "model.sinew")
            self.save(path)
            with open(path, "rb") as file:
                return Model.read, (file.read(),)
