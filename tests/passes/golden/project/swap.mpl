program "p" on {0, 1, 2} (%0: f32[2]@{0, 1}, %1: i64[]@{2}) {
  %2 = simp.constant() {parties = {2}, value = dense<i64[]>[4711]} : i64[]@{2} at "a.py:1"
  %3 = simp.shuffle_static(%0) {routing = [[0, 1], [1, 0]]} : f32[2]@{0, 1} at "a.py:2"
  return %1, %3, %2
}

program "p" on {0} (%0: f32[2]@{0}) {
  simp.send(%0) {place = 1, to = {1}} at "a.py:2"
  %1 = simp.recv() {kind = f32[2], place = 1, source = 1} : f32[2]@{0} at "a.py:2"
  return %1
}

program "p" on {1} (%0: f32[2]@{1}) {
  simp.send(%0) {place = 1, to = {0}} at "a.py:2"
  %1 = simp.recv() {kind = f32[2], place = 1, source = 0} : f32[2]@{1} at "a.py:2"
  return %1
}

program "p" on {2} (%0: i64[]@{2}) {
  %1 = simp.constant() {parties = {2}, value = dense<i64[]>[4711]} : i64[]@{2} at "a.py:1"
  return %0, %1
}
