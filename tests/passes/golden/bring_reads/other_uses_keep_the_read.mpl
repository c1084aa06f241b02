program "p" on {0} (%0: table<["n", "int64"]>@{0}) {
  %2 = simp.pcall_static() {parties = {0}} do () {
    %1 = parts.table() : table<["n", "int64"]>
    return %1
  } : table<["n", "int64"]>@{0}
  %4 = simp.pcall_static() {parties = {0}} do () {
    %3 = parts.table() : table<["n", "int64"]>
    return %3
  } : table<["n", "int64"]>@{0}
  %8 = simp.pcall_static(%2, %0) {parties = {0}} do (%5: table<["n", "int64"]>, %6: table<["n", "int64"]>) {
    %7 = parts.join(%5, %6) : table<["n", "int64"]>
    return %7
  } : table<["n", "int64"]>@{0}
  %11 = simp.pcall_static(%4) {parties = {0}} do (%9: table<["n", "int64"]>) {
    %10 = parts.query(%9) : table<["n", "int64"]>
    return %10
  } : table<["n", "int64"]>@{0}
  return %8, %11, %4
}

program "p" on {0} (%0: table<["n", "int64"]>@{0}) {
  %2 = simp.pcall_static() {parties = {0}} do () {
    %1 = parts.table() : table<["n", "int64"]>
    return %1
  } : table<["n", "int64"]>@{0}
  %4 = simp.pcall_static() {parties = {0}} do () {
    %3 = parts.table() : table<["n", "int64"]>
    return %3
  } : table<["n", "int64"]>@{0}
  %8 = simp.pcall_static(%2, %0) {parties = {0}} do (%5: table<["n", "int64"]>, %6: table<["n", "int64"]>) {
    %7 = parts.join(%5, %6) : table<["n", "int64"]>
    return %7
  } : table<["n", "int64"]>@{0}
  %11 = simp.pcall_static(%4) {parties = {0}} do (%9: table<["n", "int64"]>) {
    %10 = parts.query(%9) : table<["n", "int64"]>
    return %10
  } : table<["n", "int64"]>@{0}
  return %8, %11, %4
}
