-- Questions of several checks, alternatives or shadow checks.
local function make_several(limits)
  local key_position

  -- Two numbers a check: which limit, and the cost. Its key is the next one.
  local function read_checks()
    local checks = {}
    for index = 1, next_number() do
      key_position = key_position + 1
      checks[index] = { key = KEYS[key_position], limit = limits[next_number()], cost = next_number() }
    end
    return checks
  end

  -- Loads the states of the checks and how long each would have to wait. Returns whether all fit, or nil and an error.
  local function look(checks)
    local fits = true
    for _, check in ipairs(checks) do
      local limit = check.limit
      local state, failure = limit.algorithm.load(check.key, limit)
      if not state then
        return nil, failure
      end
      check.state = state
      check.wait_us = limit.algorithm.wait_us(limit, state, check.cost)
      fits = fits and check.wait_us == 0
    end
    return fits
  end

  -- Four integers a check: wait, remaining, reset in microseconds, time charged; -1 for "never" and "not charged".
  local function add_verdicts(checks, charges)
    for _, check in ipairs(checks) do
      local limit, state, size, charged_at = check.limit, check.state, reply_size, -1
      if charges and CHARGES and check.cost > 0 then
        charged_at = limit.algorithm.charge(limit, state, check.cost)
      end
      reply[size + 1] = check.wait_us == NEVER and -1 or check.wait_us
      reply[size + 2], reply[size + 3] = limit.algorithm.tell(limit, state)
      reply[size + 4] = charged_at
      reply_size = size + 4
    end
  end

  -- One whose state cannot be read would not have denied anybody, and must not fail the request either.
  local function answer_shadow(check)
    local fits, failure = look({ check })
    if not failure then
      return add_verdicts({ check }, fits)
    end
    local size = reply_size
    reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = 0, 0, 0, -1
    reply_size = size + 4
  end

  local function answer(alternatives, shadow)
    local at = reply_size + 1
    reply[at], reply_size = -1, at
    for index, checks in ipairs(alternatives) do
      local fits, failure = look(checks)
      if failure then
        return fail(failure)
      end
      add_verdicts(checks, fits)
      if fits then
        reply[at] = index - 1
        break
      end
    end
    for _, check in ipairs(shadow) do
      answer_shadow(check)
    end
  end

  return function(first_key)
    key_position = first_key
    local alternatives = {}
    for index = 1, next_number() do
      alternatives[index] = read_checks()
    end
    guarded(answer, alternatives, read_checks())
    return key_position
  end
end
