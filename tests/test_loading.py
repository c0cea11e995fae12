"""What an import leaves behind."""

import subprocess
import sys


def test_the_import_registers_the_classes_with_keras():
    script = (
        "import reprt\n"
        "from keras.saving import get_registered_object as found\n"
        "assert all(map(found, ['reprt>Transformer', 'reprt>MaskedCrossentropy']))\n"
        "import sys\n"
        "heavy = {'tensorflow_text', 'tensorflow_datasets', 'sacrebleu', 'reprt.lab'}\n"
        "assert not heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
