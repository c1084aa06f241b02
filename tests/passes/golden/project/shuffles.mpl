program "p" on {0, 1, 2} (%0: f32[]@{0, 1}, %1: f32[]@?, %2: i64[]@{0}) {
  %3 = simp.shuffle_static(%0) {routing = [[0, 0], [1, 0], [2, 0]]} : f32[]@{0, 1, 2} at "a.py:1"
  %4 = simp.shuffle_static(%1) {routing = [[0, 0], [1, 2]]} : f32[]@{0, 1} at "a.py:2"
  %5 = simp.shuffle_dynamic(%0, %2) : f32[]@{0} at "a.py:3"
  %6 = simp.converge(%5, %1) : f32[]@? at "a.py:4"
  return %3, %4, %6
}

program "p" on {0} (%0: f32[]@{0}, %1: f32[]@?, %2: i64[]@{0}) {
  simp.send(%0) {place = 0, to = {1, 2}} at "a.py:1"
  simp.send(%1) {place = 1, to = {0}} at "a.py:2"
  %3 = simp.recv() {kind = f32[], place = 1, source = 0} : f32[]@{0} at "a.py:2"
  %4 = simp.shuffle_dynamic(%0, %2) {askers = {0}, place = 2} : f32[]@{0} at "a.py:3"
  %5 = simp.converge(%4, %1) : f32[]@? at "a.py:4"
  return %0, %3, %5
}

program "p" on {1} (%0: f32[]@{1}, %1: f32[]@?) {
  %2 = simp.recv() {kind = f32[], place = 0, source = 0} : f32[]@{1} at "a.py:1"
  %3 = simp.recv() {kind = f32[], place = 1, source = 2} : f32[]@{1} at "a.py:2"
  %4 = simp.nothing() {kind = i64[]} : i64[]@?
  %5 = simp.shuffle_dynamic(%0, %4) {askers = {0}, place = 2} : f32[]@? at "a.py:3"
  return %2, %3, %1
}

program "p" on {2} (%0: f32[]@?) {
  %1 = simp.recv() {kind = f32[], place = 0, source = 0} : f32[]@{2} at "a.py:1"
  simp.send(%0) {place = 1, to = {1}} at "a.py:2"
  %2 = simp.nothing() {kind = f32[]} : f32[]@?
  %3 = simp.nothing() {kind = i64[]} : i64[]@?
  %4 = simp.shuffle_dynamic(%2, %3) {askers = {0}, place = 2} : f32[]@? at "a.py:3"
  return %1, %0
}
