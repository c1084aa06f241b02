program "p" on {0} () {
  %1 = simp.pcall_static() {parties = {0}} do () {
    %0 = parts.table() : table<["n", "int64"]>
    return %0
  } : table<["n", "int64"]>@{0}
  %3 = simp.pcall_static() {parties = {0}} do () {
    %2 = parts.table() : table<["n", "int64"]>
    return %2
  } : table<["n", "int64"]>@{0}
  %7 = simp.pcall_static(%1, %3) {parties = {0}} do (%4: table<["n", "int64"]>, %5: table<["n", "int64"]>) {
    %6 = parts.join(%4, %5) : table<["n", "int64"]>
    return %6
  } : table<["n", "int64"]>@{0}
  %10 = simp.pcall_static(%1) {parties = {0}} do (%8: table<["n", "int64"]>) {
    %9 = parts.query(%8) : table<["n", "int64"]>
    return %9
  } : table<["n", "int64"]>@{0}
  return %7, %10
}

program "p" on {0} () {
  %3 = simp.pcall_static() {parties = {0}} do () {
    %0 = parts.table() : table<["n", "int64"]>
    %1 = parts.table() : table<["n", "int64"]>
    %2 = parts.join(%0, %1) : table<["n", "int64"]>
    return %2
  } : table<["n", "int64"]>@{0}
  %6 = simp.pcall_static() {parties = {0}} do () {
    %4 = parts.table() : table<["n", "int64"]>
    %5 = parts.query(%4) : table<["n", "int64"]>
    return %5
  } : table<["n", "int64"]>@{0}
  return %3, %6
}
