"""Compiles the hot modules of retrograd.core, or none of them, and the kernels (docs/decisions/0002, 0020)."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from runpy import run_path
from sysconfig import get_config_var
from textwrap import shorten
from threading import Lock

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, CompileError

CORE, KERNELS = Path("src/retrograd/core"), Path("src/retrograd/kernels")
HOT = run_path(str(CORE / "build_config.py"))["HOT"]  # the modules to compile
# A module of functions that Cython would otherwise compile into each of them. The last part of its name is unique:
# Cython also puts it into sys.modules by that part alone.
SHARED = "retrograd.core.retrograd_cython"
# Modules in which -O1, with the inlining of -O2, adds nothing to the instructions of a call or of a backward pass. They
# compile in 65 % of the time.
COLD = {
    *("aval", "blocks", "engine", "function_node", "guards", "level", "op", "retrograd_cython", "state", "views"),
    "vjp_rule",
}  # fmt: skip
# auto_pickle: code that pickles extension types by their fields. None of them needs it; compiling it takes 3 s of CPU.
DIRECTIVES = {
    "language_level": 3, "binding": True, "initializedcheck": False, "embedsignature": False, "auto_pickle": False,
}  # fmt: skip

# Functions that run once, when a module is imported. With the other optimizations, the core compiles 13 % longer.
ONCE = '__attribute__((cold, optimize("O0")))'

WINDOWS = sys.platform == "win32"
GCC = sys.platform == "linux" and "clang" not in (os.environ.get("CC") or get_config_var("CC") or "")
LESS = [
    *("-O1", "-fstrict-aliasing", "-finline-functions", "-finline-small-functions", "-findirect-inlining"),
    *("-fpartial-inlining", "-fcaller-saves", "-foptimize-sibling-calls"),
]
# Without GCC's dominator pass, the other modules compile in 90 % of the time.
MORE = ["-O2", "-fno-tree-dominator-opts"]

# Vectorise what sets errno or floating-point flags in the C library; NaN and infinities stay what they are. With -O2,
# dropout takes 1.8 times as long, pooling with overlapping windows 6, and batch normalization rounds otherwise.
# -fwrapv: CPython's own flags have it on most platforms; without it the attention kernels take 1.9 times as long.
FLAGS = ["/std:c++17"] if WINDOWS else ["-std=c++17", "-O3", "-g0", "-fwrapv", "-fno-math-errno", "-fno-trapping-math"]
# Kernels of sums of two products. A compiler fuses one of them with the addition: newer ones not the same one in whole
# vectors and for the last elements, so numbers would depend on where an array is cut.
UNFUSED = KERNELS / "updates.cpp"
# A file that reads each plan once; the functions in it that run at every call have -O3 by themselves.
PLANS = KERNELS / "call_plan.cpp"
# Headers that nearly every kernel, and every module of the core, includes.
HEADERS = {
    ".cpp": ("registration.hpp", "ufunc_adapter.hpp", "vectors.hpp", "cstring", "limits", "memory", "vector"),
    ".c": (
        *("Python.h", "numpy/arrayobject.h", "structmember.h", "pythread.h", "stdatomic.h", "math.h", "stdalign.h"),
        *("stdlib.h", "string.h", "compile.h", "frameobject.h", "traceback.h"),
    ),
}


def say(text):
    print(f"retrograd: {text}", file=sys.stderr, flush=True)


def extensions():
    if os.environ.get("RETROGRAD_PURE") == "1":
        return plain("RETROGRAD_PURE=1")
    missing = [name for name in HOT if not ((CORE / name).with_suffix(".py").exists())]
    if missing:
        return plain(f"not in {CORE}: {', '.join(missing)}")
    try:
        import Cython
        import numpy
    except ImportError as error:
        return plain(f"{error.name} is not installed")
    if tuple(map(int, Cython.__version__.split(".")[:2])) < (3, 3):
        return plain(f"Cython 3.3 is needed, and {Cython.__version__} is installed")
    include = numpy.get_include()
    return [*[extension(name, include) for name in HOT], extension("retrograd_cython", include, ".c"), kernels(include)]


def translate(core):
    """Replace the sources of modules by C.  Only a build needs that: `pip` reads the metadata twice before it."""
    from Cython.Build import cythonize

    say(f"translating {len(core)} modules of the core to C")
    translated = cythonize(
        core,
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        quiet=True,
        shared_utility_qualified_name=SHARED,
        shared_utility_features_disabled=["MemoryView"],  # nothing here uses them, and they are most of the module
    )
    for ext, found in zip(core, translated, strict=True):
        ext.sources, ext.depends = found.sources, found.depends


def plain(reason):
    say(f"the core is not compiled, it runs as plain Python ({reason})")
    return []


def extension(name, include, suffix=".py"):
    """Return a module of the core.  With -O3 the core takes 12 s longer to compile, and is not faster beyond 2 %.

    -Wno-all: the analyses behind warnings take 7 % of the time, and nobody edits C that Cython made.
    """
    flags = ["-O2"] if not GCC else LESS if name in COLD else MORE
    return Extension(
        f"retrograd.core.{name}",
        [str(CORE / f"{name}{suffix}")],
        include_dirs=[include],
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("PY_SSIZE_T_CLEAN", None),
            *([("CYTHON_SMALL_CODE", ONCE)] if GCC else []),
        ],
        extra_compile_args=[] if WINDOWS else [*flags, "-g0", "-Wno-all"],
    )


def extended(options, *flags):
    """Return a compiler's options with more flags."""
    return options | {"extra_postargs": [*options["extra_postargs"], *flags]}


def kernels(include):
    """In C++, by themselves: where they fail to compile, what they do is done with NumPy."""
    return Extension(
        "retrograd.kernels.native",
        sorted(map(str, KERNELS.glob("*.cpp"))),
        depends=sorted(map(str, KERNELS.glob("*.hpp"))),
        include_dirs=[include],
        language="c++",
        extra_compile_args=FLAGS,
        extra_link_args=[] if WINDOWS else ["-pthread"],
    )


class AllOrNone(build_ext):
    """A compiled module of the core needs its neighbours' C types: one failure drops all of them, and the kernels."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or min(os.cpu_count() or 1, 8)

    def build_extensions(self):
        everything = self.extensions
        core = [ext for ext in everything if ext.name.startswith("retrograd.core.")]
        if core:
            translate(core)
        self.total, self.done, self.compile = sum(len(ext.sources) for ext in everything), set(), self.compiler.compile
        self.compiler.compile, self.counting = self.compile_sources, Lock()
        self.headers, self.precompiling = {}, Lock()
        if everything:
            say(f"checking {self.total} files, and compiling what has changed, {self.parallel} at a time")
        rest = [ext for ext in everything if ext not in core]
        if self.built(core, "the core", plain):
            say(f"the core is compiled ({', '.join(HOT)})")
            if self.built(rest, "the kernels", say):
                say("the kernels are compiled")
        else:
            self.drop(rest)
        self.extensions = everything

    def build_extension(self, ext):
        super().build_extension(ext)
        self.done.update(ext.sources)  # also those that were up to date

    def compile_sources(self, sources, **options):
        """Compile the files of an extension at the same time, which setuptools does not; return their objects."""
        native, kind = str(KERNELS / "native.cpp"), Path(sources[0]).suffix
        prepared = {native: options}  # this file alone defines the tables of NumPy's functions
        if not WINDOWS:
            prepared[str(UNFUSED)] = extended(options, "-ffp-contract=off")
        if GCC:
            prepared[str(PLANS)] = extended(options, "-O1")
        if GCC and set(sources) - set(prepared):
            options = self.precompile(kind, options)
        with ThreadPoolExecutor(self.parallel) as threads:
            built = threads.map(lambda source: self.compile_source(source, prepared.get(source, options)), sources)
            return [name for objects in built for name in objects]

    def precompile(self, kind, options):
        """Compile the headers of files of a kind, once for the same flags, and return options that include them.

        Without them if that fails.
        """
        options = options | {"include_dirs": [*options["include_dirs"], str(KERNELS)]} if kind == ".cpp" else options
        flags = (kind, *options["extra_postargs"])
        with self.precompiling:
            if flags not in self.headers:
                source = Path(self.build_temp, f"headers{len(self.headers)}{kind}")
                self.headers[flags] = self.compile_headers(source, options)
            return extended(options, *self.headers[flags])

    def compile_headers(self, source, options):
        """Compile a file that includes them, and return the flags to include it, none if it does not compile."""
        language = "c-header" if source.suffix == ".c" else "c++-header"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("".join(f"#include <{name}>\n" for name in HEADERS[source.suffix]))
        try:
            [made] = self.compile([str(source)], **options, extra_preargs=["-x", language])
        except CompileError:
            return []
        Path(made).replace(f"{source}.gch")  # read instead of the file without .gch
        return ["-include", str(source)]

    def compile_source(self, source, options):
        start = time.perf_counter()
        objects = self.compile([source], **options)
        with self.counting:
            self.done.add(source)
            seconds = time.perf_counter() - start
            say(f"{len(self.done)} of {self.total}: {Path(source).name}, {seconds:.1f} s")
        return objects

    def built(self, some, name, tell):
        """Build some extensions; whether that went well, else the first error is told, and they are dropped."""
        self.extensions = some
        try:
            super().build_extensions()
        except (CCompilerError, BaseError) as error:
            self.drop(some)
            what = "" if tell is plain else f"{name} are not compiled, NumPy does their work: "
            tell(f"{what}the C compiler failed: {shorten(str(error), 100)}")
            return False
        return True

    def drop(self, some):
        """Older binaries too: beside newer sources they would be imported."""
        for ext in some:
            ext.optional = True  # now that it is missing, the rest of the build goes on without it
            filename = Path(self.get_ext_filename(ext.name))
            for folder in (Path(self.build_lib), Path("src")):
                (folder / filename).unlink(missing_ok=True)


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone})
