-- Sliding-window counter in sub-windows; see engine/sliding-window-buckets.ts.
-- A hash: `start` of the newest part in microseconds, and `counts` of the parts, newest first, with commas between.
local function make_buckets()
  local buckets = {}

  function buckets.load(key, limit)
    local fields = redis.pcall('HMGET', key, 'start', 'counts')
    local failure
    if not fields[1] then
      -- @inline hash.empty
    end
    if failure then
      return nil, failure
    end
    local part = math.ceil(limit.window_us / limit.buckets)
    local state = { key = key, part = part, counts = {}, used = 0 }
    local stored, text = 0, ''
    if fields[1] then
      stored, text = whole(fields[1]), fields[2]
      if not (stored and text and string.find(text, '^%d[%d,]*$')) then
        return nil, BAD_STATE
      end
    end
    local at = now
    local forgotten = stored - now > 2 * limit.window_us - (limit.buckets + 1) * part
    if stored > now and not forgotten then
      at = stored
    end
    state.at, state.start = at, at - at % part
    state.is_new_part = state.start ~= stored
    local passed = forgotten and limit.buckets + 1 or (state.start - stored) / part
    if passed <= limit.buckets then
      for age = 1, passed do
        state.counts[age] = 0
      end
      local counts, size, used = state.counts, #state.counts, 0
      for count in string.gmatch(text, '%d+') do
        if size == limit.buckets + 1 then
          break
        end
        size = size + 1
        count = tonumber(count)
        counts[size], used = count, used + count
      end
      state.used = used
    end
    if state.used > MAX_SAFE then
      return nil, BAD_STATE
    end
    return state
  end

  -- When the part of this age (0 is the newest) stops counting.
  local function leaves_at(limit, state, age)
    return state.start + (limit.buckets + 1 - age) * state.part
  end

  function buckets.wait_us(limit, state, cost)
    if cost > limit.limit then
      return NEVER
    end
    local excess = state.used + cost - limit.limit
    if excess <= 0 then
      return 0
    end
    local age = #state.counts - 1
    while age > 0 do
      excess = excess - state.counts[age + 1]
      if excess <= 0 then
        break
      end
      age = age - 1
    end
    return leaves_at(limit, state, age) - now
  end

  -- Units left, and the time until no counted part holds any unit.
  function buckets.tell(limit, state)
    local reset_us = 0
    for index, count in ipairs(state.counts) do
      if count > 0 then
        reset_us = leaves_at(limit, state, index - 1) - now
        break
      end
    end
    return math.max(0, limit.limit - state.used), reset_us
  end

  local function save_buckets(limit, state)
    redis.call('HSET', state.key, 'start', text_of(state.start), 'counts', table.concat(state.counts, ','))
    -- Two windows from the first write in a part cover all the time in which what is written in it can matter.
    if state.is_new_part then
      expire_after(state.key, math.max(0, state.start - now) + 2 * limit.window_us)
    end
  end

  function buckets.charge(limit, state, cost)
    state.counts[1] = (state.counts[1] or 0) + cost
    state.used = state.used + cost
    save_buckets(limit, state)
    return state.at
  end

  function buckets.charge_beyond(limit, state, units)
    local cost = math.min(units, room_beyond(limit, state.used))
    if cost > 0 then
      buckets.charge(limit, state, cost)
    end
  end

  function buckets.refund(limit, state, units, charged_at)
    local charged_age = charged_at and (state.start - (charged_at - charged_at % state.part)) / state.part
    local left = units
    for age = #state.counts - 1, 0, -1 do
      if not charged_at or charged_age == age then
        local back = math.min(left, state.counts[age + 1])
        state.counts[age + 1] = state.counts[age + 1] - back
        left = left - back
      end
    end
    if left < units then
      save_buckets(limit, state)
    end
    return units - left
  end

  return buckets
end
