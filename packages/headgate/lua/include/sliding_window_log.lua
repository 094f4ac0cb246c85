-- Sliding-window log; see engine/sliding-window-log.ts.
-- A sorted set: score = when the charge counts, in microseconds; member = running total of units, 13 digits wide so
-- that entries of one microsecond sort in the order they came. The newest entry that has left the window is kept: its
-- total is what the use of the window is counted from.
local function make_log()
  local log = {}

  local MAX_TOTAL = 9999999999999

  local function member_of(total)
    return string.format('%013d', total)
  end

  -- The total in a member, or nil when Headgate did not write it.
  local function total_of(member)
    return #member == 13 and whole(member) or nil
  end

  -- Redis may write the score of a whole number with an exponent, so that its value must do.
  local function is_time(score)
    return score >= 0 and score <= MAX_SAFE and score % 1 == 0
  end

  function log.load(key, limit)
    local last = redis.pcall('ZRANGE', key, -1, -1, 'WITHSCORES')
    if last.err then
      return nil, last.err
    end
    local state = { key = key, last_us = nil, total = 0, base_total = 0, base_us = nil, used = 0, at = now }
    if not last[1] then
      return state
    end
    state.last_us = tonumber(last[2])
    state.total = total_of(last[1])
    if not (state.total and is_time(state.last_us)) then
      return nil, BAD_STATE
    end
    if state.last_us > now + limit.window_us then
      -- From before the clock stepped back; it would lock the key.
      state.forgotten = true
      return state
    end
    state.at = math.max(now, state.last_us)
    local edge = state.at - limit.window_us
    if state.last_us <= edge then
      state.base_total, state.base_us = state.total, state.last_us
    else
      local base = redis.call('ZREVRANGEBYSCORE', key, edge, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if base[1] then
        state.base_total, state.base_us = total_of(base[1]), tonumber(base[2])
      end
      if not state.base_total then
        return nil, BAD_STATE
      end
    end
    state.used = state.total - state.base_total
    return state
  end

  -- The first live entry whose running total is at least `needed`: its leaving makes room.
  local function entry_freeing(state, limit, needed)
    local low = redis.call('ZCOUNT', state.key, '-inf', state.at - limit.window_us)
    local first = redis.call('ZRANGE', state.key, low, low, 'WITHSCORES')
    if tonumber(first[1]) >= needed then
      return tonumber(first[2])
    end
    local high = redis.call('ZCARD', state.key) - 1
    low = low + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if tonumber(redis.call('ZRANGE', state.key, middle, middle)[1]) >= needed then
        high = middle
      else
        low = middle + 1
      end
    end
    return tonumber(redis.call('ZRANGE', state.key, low, low, 'WITHSCORES')[2])
  end

  function log.wait_us(limit, state, cost)
    if cost > limit.limit then
      return NEVER
    end
    if state.used + cost <= limit.limit then
      return 0
    end
    return entry_freeing(state, limit, state.total + cost - limit.limit) + limit.window_us - now
  end

  -- Units left, and the time until the whole limit is free again.
  function log.tell(limit, state)
    local reset_us = state.used == 0 and 0 or state.last_us + limit.window_us - now
    return math.max(0, limit.limit - state.used), reset_us
  end

  -- Counts totals from zero again, long before they outgrow their 13 digits.
  local function count_from_zero(state, limit)
    local entries = redis.call('ZRANGEBYSCORE', state.key, '(' .. string.format('%d', state.at - limit.window_us), '+inf', 'WITHSCORES')
    redis.call('DEL', state.key)
    for index = 1, #entries, 2 do
      redis.call('ZADD', state.key, entries[index + 1], member_of(tonumber(entries[index]) - state.base_total))
    end
    state.total, state.base_total, state.base_us = state.used, 0, nil
  end

  local function expire(limit, state)
    expire_after(state.key, math.max(0, state.last_us - now) + limit.window_us)
  end

  function log.charge(limit, state, cost)
    if state.forgotten then
      redis.call('DEL', state.key)
      state.total, state.forgotten = 0, nil
    elseif state.base_us then
      redis.call('ZREMRANGEBYSCORE', state.key, '-inf', '(' .. string.format('%d', state.base_us))
    end
    if state.total + cost > MAX_TOTAL then
      count_from_zero(state, limit)
    end
    state.total = state.total + cost
    state.used = state.used + cost
    state.last_us = state.at
    redis.call('ZADD', state.key, text_of(state.at), member_of(state.total))
    expire(limit, state)
    return state.at
  end

  -- Later totals are lowered, so everything from the first refunded entry on is written again.
  function log.refund(limit, state, units, charged_at)
    if state.used == 0 then
      return 0
    end
    local edge = state.at - limit.window_us
    if charged_at and charged_at <= edge then
      return 0
    end
    local from = charged_at and string.format('%d', charged_at) or '(' .. string.format('%d', edge)
    local entries = redis.call('ZRANGEBYSCORE', state.key, from, '+inf', 'WITHSCORES')
    if #entries == 0 or (charged_at and tonumber(entries[2]) ~= charged_at) then
      return 0
    end
    local rank = redis.call('ZRANK', state.key, entries[1])
    local before = rank > 0 and tonumber(redis.call('ZRANGE', state.key, rank - 1, rank - 1)[1]) or 0
    local left, kept_total, original = units, before, before
    redis.call('ZREMRANGEBYSCORE', state.key, from, '+inf')
    if state.base_us then
      -- The newest entry may be gone, and with it the time below which this key does not go: what had left stays gone.
      redis.call('ZREMRANGEBYSCORE', state.key, '-inf', state.base_us)
      redis.call('ZADD', state.key, 0, member_of(state.base_total))
    end
    for index = 1, #entries, 2 do
      local total, time_us = tonumber(entries[index]), tonumber(entries[index + 1])
      local cost = total - original
      local back = 0
      if not charged_at or time_us == charged_at then
        back = math.min(left, cost)
      end
      original = total
      left = left - back
      if back < cost then
        kept_total = kept_total + cost - back
        redis.call('ZADD', state.key, time_us, member_of(kept_total))
      end
    end
    expire(limit, state)
    return units - left
  end

  return log
end
