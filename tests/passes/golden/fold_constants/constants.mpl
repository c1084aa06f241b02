program "p" on {0, 1, 2} () {
  %0 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[7]} : i64[]@{0, 1} at "a.py:1"
  %1 = simp.shuffle_static(%0) {routing = [[0, 1]]} : i64[]@{0} at "a.py:2"
  %2 = simp.shuffle_static(%0) {routing = [[2, 1]]} : i64[]@{2} at "a.py:3"
  %4 = simp.pcall_static(%0) {parties = {1}} do (%3: i64[]) {
    return %3
  } : i64[]@{1} at "a.py:4"
  %5 = simp.converge(%1, %4) : i64[]@{0, 1} at "a.py:5"
  %6 = simp.converge(%1, %4, %2) : i64[]@{0, 1, 2} at "a.py:6"
  %7 = simp.converge(%2) : i64[]@{2} at "a.py:7"
  return %1, %2, %4, %5, %6, %7
}

program "p" on {0, 1, 2} () {
  %0 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[7]} : i64[]@{0, 1} at "a.py:1"
  %1 = simp.constant() {parties = {0}, value = dense<i64[]>[7]} : i64[]@{0} at "a.py:2"
  %2 = simp.shuffle_static(%0) {routing = [[2, 1]]} : i64[]@{2} at "a.py:3"
  %3 = simp.constant() {parties = {1}, value = dense<i64[]>[7]} : i64[]@{1} at "a.py:4"
  %4 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[7]} : i64[]@{0, 1} at "a.py:5"
  %5 = simp.converge(%1, %3, %2) : i64[]@{0, 1, 2} at "a.py:6"
  return %1, %2, %3, %4, %5, %2
}
