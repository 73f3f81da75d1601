"""A JVM that both sides can use."""

from __future__ import annotations

import os

from epicqa.index import jvm


def start() -> None:
    """Start the JVM as ``jvm.start`` does, but with Log4j's core, which Anserini's tools need."""
    import jnius_config

    os.environ["JAVA_HOME"] = str(jvm.java_home())
    jnius_config.set_classpath(str(jvm.anserini_jar()))
    jnius_config.set_options(
        "-Xrs", "-Xmx1536m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Dslf4j.internal.verbosity=ERROR"
    )
    level = jvm.load("org.apache.logging.log4j.Level").OFF
    jvm.load("org.apache.logging.log4j.core.config.Configurator").setRootLevel(level)
    jvm.start()
