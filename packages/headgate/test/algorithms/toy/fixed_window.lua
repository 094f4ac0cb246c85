-- Fixed window; see fixed-window.ts. A hash: `start` of the last window and units `used` in it.
-- @algorithm 6 make_fixed_window
local function make_fixed_window()
  local fixed = {}

  function fixed.load(key, limit)
    local fields = redis.pcall('HMGET', key, 'start', 'used')
    if fields.err then
      return nil, fields.err
    end
    local stored = whole(fields[1]) or 0
    local start = math.max(stored, now - now % limit.window_us)
    return { key = key, start = start, used = stored == start and whole(fields[2]) or 0, at = now }
  end

  function fixed.wait_us(limit, state, cost)
    if cost > limit.limit then
      return NEVER
    end
    return state.used + cost <= limit.limit and 0 or state.start + limit.window_us - now
  end

  function fixed.tell(limit, state)
    return limit.limit - state.used, state.used == 0 and 0 or state.start + limit.window_us - now
  end

  function fixed.charge(limit, state, cost)
    state.used = state.used + cost
    redis.call('HSET', state.key, 'start', text_of(state.start), 'used', text_of(state.used))
    expire_after(state.key, limit.window_us)
    return math.max(now, state.start)
  end

  return fixed
end
