"""What files may say that anybody could have made: learned state, checkpoints, class paths, archives, sizes."""
