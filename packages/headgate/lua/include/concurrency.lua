-- Concurrency; see algorithms/concurrency.ts.
-- @algorithm 5 make_concurrency
-- A sorted set of places: score = when it expires, in microseconds; member = when it was taken, 16 digits wide, and for
-- the second unit and on of one request `.1`, `.2` and so on behind it. `reset:<time>` with a score of -1 keeps the
-- latest that was taken before the last reset.
local function make_concurrency()
  local concurrency = {}

  local MOST_WAIT_US, MOST_HOLDS = 1000000, 2

  local function member_of(taken_us, unit)
    return unit == 0 and string.format('%016d', taken_us) or string.format('%016d.%d', taken_us, unit)
  end

  -- When a place was taken, or nil when Headgate did not write it.
  local function taken_of(member)
    return tonumber(string.match(member, '^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$')
      or string.match(member, '^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)%.%d+$'))
  end

  function concurrency.load(key, limit)
    local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
    if first.err then
      return nil, first.err
    end
    local state = { key = key, used = 0, reset_us = 0, at = now, from = '(' .. text_of(now) }
    state.latest = now + MOST_HOLDS * limit.window_us
    state.to = text_of(state.latest)
    if not first[1] then
      return state
    end
    local reset = string.match(first[1], '^reset:(%d+)$')
    state.reset_us = reset and tonumber(reset) or 0
    if not (reset or taken_of(first[1])) then
      return nil, BAD_STATE
    end
    state.used = redis.call('ZCOUNT', key, state.from, state.to)
    -- Places that have expired, or are from before the clock stepped back, are left to whoever writes.
    state.dead = redis.call('ZCARD', key) - state.used > (reset and 1 or 0)
    return state
  end

  function concurrency.wait_us(limit, state, cost)
    if cost > limit.limit then
      return NEVER
    end
    local needed = state.used + cost - limit.limit
    if needed <= 0 then
      return 0
    end
    local place = redis.call('ZRANGEBYSCORE', state.key, state.from, state.to, 'WITHSCORES', 'LIMIT', needed - 1, 1)
    return place[2] and math.min(MOST_WAIT_US, tonumber(place[2]) - now) or MOST_WAIT_US
  end

  -- Units left, and the time until all places are free if nobody gives one back or renews it.
  function concurrency.tell(limit, state)
    if state.used == 0 then
      return limit.limit, 0
    end
    local last = redis.call('ZREVRANGEBYSCORE', state.key, state.to, state.from, 'WITHSCORES', 'LIMIT', 0, 1)
    return math.max(0, limit.limit - state.used), tonumber(last[2]) - now
  end

  local function drop_dead(state)
    if state.dead then
      redis.call('ZREMRANGEBYSCORE', state.key, 0, text_of(now))
      redis.call('ZREMRANGEBYSCORE', state.key, '(' .. state.to, '+inf')
      state.dead = false
    end
  end

  local function hold(limit, state, taken_us, units)
    local expires = text_of(now + limit.window_us)
    for unit = 0, units - 1 do
      redis.call('ZADD', state.key, expires, member_of(taken_us, unit))
    end
    expire_after(state.key, MOST_HOLDS * limit.window_us)
  end

  function concurrency.charge(limit, state, cost)
    drop_dead(state)
    local taken_us = math.max(now, state.reset_us + 1)
    while redis.call('ZSCORE', state.key, member_of(taken_us, 0)) do
      taken_us = taken_us + 1
    end
    hold(limit, state, taken_us, cost)
    state.used = state.used + cost
    return taken_us
  end

  -- Gives up to `units` of one request back, the last first: those that stay are numbered from the first.
  local function give_back(state, taken_us, units)
    local held = 0
    while redis.call('ZSCORE', state.key, member_of(taken_us, held)) do
      held = held + 1
    end
    local back = math.min(units, held)
    for unit = held - back, held - 1 do
      redis.call('ZREM', state.key, member_of(taken_us, unit))
    end
    return back
  end

  -- There are as many under way as there are.
  function concurrency.charge_beyond() end

  local function is_live(state, taken_us)
    local expires = tonumber(redis.call('ZSCORE', state.key, member_of(taken_us, 0)) or nil)
    return expires and expires > now and expires <= state.latest
  end

  function concurrency.refund(_, state, units, taken_us)
    if taken_us then
      return is_live(state, taken_us) and give_back(state, taken_us, units) or 0
    end
    local left = math.min(units, state.used)
    local back = left
    while left > 0 do
      local first = redis.call('ZRANGEBYSCORE', state.key, state.from, state.to, 'LIMIT', 0, 1)
      left = left - give_back(state, taken_of(first[1]), left)
    end
    return back
  end

  -- Returns 1 when the place is held for another while, taken again if it was gone and there is room; 0 when there is none.
  function concurrency.renew(limit, state, units, taken_us)
    drop_dead(state)
    local held = 0
    while redis.call('ZSCORE', state.key, member_of(taken_us, held)) do
      held = held + 1
    end
    if held == 0 and state.used + units > limit.limit then
      return 0
    end
    hold(limit, state, taken_us, held > 0 and held or units)
    return 1
  end

  -- Leaves the latest that was taken, so that no new place gets the name of an old one.
  function concurrency.start_new_life(limit, state)
    local latest = state.reset_us
    for _, member in ipairs(redis.call('ZRANGE', state.key, 0, -1)) do
      latest = math.max(latest, taken_of(member) or 0)
    end
    redis.call('DEL', state.key)
    redis.call('ZADD', state.key, -1, 'reset:' .. text_of(latest))
    expire_after(state.key, MOST_HOLDS * limit.window_us)
  end

  return concurrency
end
