#!/bin/bash
#SBATCH --job-name=rows
#SBATCH --array=1-16
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
# One part of a store of PPR rows per task of a job array, see docs/parts.md:
#
#   job=$(DATASET=papers DATA=/shared/graphs ROWS=/shared/rows PARTS=16 sbatch --parsable examples/parts_slurm.sh)
#   sbatch --dependency=afterok:$job --wrap "python -m precompute finish /shared/rows"
#
# To compute some parts again, give their numbers, but leave PARTS as it is: sbatch --array=3,5 ...
set -euo pipefail
python -m precompute --dataset "$DATASET" --data-dir "$DATA" --out "$ROWS" \
    --threads "${SLURM_CPUS_PER_TASK:-1}" --part "$SLURM_ARRAY_TASK_ID/${PARTS:-16}"
