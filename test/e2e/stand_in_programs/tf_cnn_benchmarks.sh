#!/bin/sh
# Stands in for TensorFlow's benchmark: every rank prints what the real one does, in a second.
rank=${OMPI_COMM_WORLD_RANK:?not started by mpirun} ranks=${OMPI_COMM_WORLD_SIZE:?not started by mpirun}
model='' batch=64
for argument; do
    case $argument in
    --model=*) model=${argument#*=} ;;
    --batch_size=*) batch=${argument#*=} ;;
    esac
done
if [ "$rank" = 0 ]; then
    echo 'TensorFlow:  stand-in'
    echo "Model:       $model"
    echo 'Mode:        training'
    echo "Batch size:  $((batch * ranks)) global"
    echo "             $batch per device"
    echo 'Num batches: 100'
    echo "Devices:     $(seq -s ', ' -f "'horovod/gpu:%g'" 0 $((ranks - 1)) | sed 's/.*/[&]/')"
fi
for step in $(seq 10 10 100); do
    printf '%s\timages/sec: 154.4 +/- 0.7 (jitter = 4.0)\t8.280\n' "$step"
done
[ "$rank" != 0 ] || echo 'total images/sec: 308.27'
