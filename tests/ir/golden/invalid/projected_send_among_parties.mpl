// error: VerifyError: simp.send at a.py:1 is part of a projection, which is for one party; this program is for {0, 1}
program "p" on {0, 1} (%0: f32[]@{0}) {
  simp.send(%0) {place = 2, to = {1}} at "a.py:1"
  %1 = simp.constant() {parties = {0}, value = dense<i64[]>[1]} : i64[]@{0}
  %2 = simp.shuffle_static(%1) {routing = [[1, 0]]} : i64[]@{1} at "a.py:2"
  return %2
}
