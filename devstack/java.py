"""Java, and the jars of Apache Kafka from Maven Central by coordinates. For `devstack.broker`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from devstack import apt
from devstack.cache import fetch_once
from devstack.server import console

_KAFKA = "4.1.0"
_JAVA_MAJOR = 17


def java() -> str:
    """Path of Java 17 or newer; installed if it is missing, on Debian as root.

    Raises:
        RuntimeError: Java is missing or too old.
    """
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin/java") if home else shutil.which("java")
    if path is None and apt.is_root() and shutil.which("apt-get"):
        with console.status("broker: installing a Java runtime"):
            apt.install("openjdk-17-jre-headless")
        path = shutil.which("java")
    if path is None or not Path(path).exists():
        raise RuntimeError("Java 17 or newer is required: install a runtime, or set JAVA_HOME")
    output = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr
    major = java_major(output)
    if major is None or major < _JAVA_MAJOR:
        raise RuntimeError(f"Java {_JAVA_MAJOR} or newer is required, but {path} reports: {output.strip()[:200]}")
    return path


def java_major(output: str) -> int | None:
    """The major version in the output of `java -version`."""
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return None if match is None else int(match[1])


def kafka_jars() -> Path:
    """The folder of the broker's jars, downloaded once."""
    return fetch_once(f"kafka-{_KAFKA}", _fetch_jars) / "jars"


def _fetch_jars(place: Path) -> None:
    """Download with Maven if it is installed and works, otherwise with the Ivy of Spark."""
    tools = [_maven, _ivy] if shutil.which("mvn") else [_ivy]
    output = ""
    with console.status(f"broker: Apache Kafka {_KAFKA} from Maven Central (43 MB, once)"):
        for tool in tools:
            done = subprocess.run(tool(place), capture_output=True, text=True, check=False, cwd=place)
            if done.returncode == 0 and list((place / "jars").glob(f"kafka_2.13-{_KAFKA}.jar")):
                return
            output += (done.stdout + done.stderr)[-2000:]
            shutil.rmtree(place / "jars", ignore_errors=True)
    raise RuntimeError(f"downloading Apache Kafka failed:\n{output}")


def _maven(place: Path) -> list[str]:
    (place / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>lagscale</groupId><artifactId>devstack</artifactId>"
        "<version>1</version><dependencies><dependency><groupId>org.apache.kafka</groupId>"
        f"<artifactId>kafka_2.13</artifactId><version>{_KAFKA}</version></dependency></dependencies></project>"
    )
    return ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={place / 'jars'}"]


def _ivy(place: Path) -> list[str]:
    import pyspark  # Only if Maven is missing.

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    return [
        *(java(), "-jar", str(ivy), "-cache", str(place / "ivy")),
        *("-dependency", "org.apache.kafka", "kafka_2.13", _KAFKA, "-confs", "default"),
        *("-retrieve", f"{place}/jars/[artifact]-[revision].[ext]"),
    ]
