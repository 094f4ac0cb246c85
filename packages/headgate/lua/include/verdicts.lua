-- Replies are flat lists of integers; -1 stands for "never" and for "not charged".
local function add_verdict(reply, check, now, wait_us, charged_at)
  local algorithm, limit, state = check.limit.algorithm, check.limit, check.state
  local size = #reply
  reply[size + 1] = wait_us == NEVER and -1 or wait_us
  reply[size + 2] = algorithm.remaining(limit, state, now)
  reply[size + 3] = algorithm.reset_after_us(limit, state, now)
  reply[size + 4] = charged_at
end

-- A shadow check whose state cannot be read would not have denied anybody, and must not fail the request either.
local function add_unreadable(reply)
  local size = #reply
  reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = 0, 0, 0, -1
end

-- Loads the states of the checks and how long each would have to wait. Returns whether all fit, or nil and an error.
local function look(checks, now)
  local fits = true
  for _, check in ipairs(checks) do
    local limit = check.limit
    local state, failure = limit.algorithm.load(check.key, limit, now)
    if not state then
      return nil, failure
    end
    check.state = state
    check.wait_us = limit.algorithm.wait_us(limit, state, check.cost, now)
    fits = fits and check.wait_us == 0
  end
  return fits
end

local function charge(check, now)
  if check.cost == 0 then
    return -1
  end
  return check.limit.algorithm.charge(check.limit, check.state, check.cost, now)
end

-- A question that could not be answered is an answer of its own: the others of the call stand.
local function fail(reply, size, failure)
  for index = #reply, size + 1, -1 do
    reply[index] = nil
  end
  reply[size + 1] = -2
  reply[size + 2] = failure
end
