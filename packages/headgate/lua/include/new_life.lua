-- A reset starts a new life of a key: what was charged before it is not given back to it. See docs/adr/0021.
-- A hash keeps the time of the reset in `reset`, beside fields that say that nothing is used. A log keeps one entry that
-- adds nothing to the total; other algorithms bring a `start_new_life` of their own. Only refunds and resets look at them.
local LOG, COUNTER, BUCKETS = 1, 2, 3

local function reset_time_of(key)
  return whole(redis.call('HMGET', key, 'reset')[1]) or 0
end

-- Whether what was charged then belongs to a former life. A log, and whoever starts its new life itself, find that out.
local function is_of_former_life(limit, key, charged_at)
  local finds_out = limit.which == LOG or limit.algorithm.start_new_life
  return not finds_out and charged_at and charged_at <= reset_time_of(key)
end

local function unused_fields(limit)
  if limit.which == COUNTER then
    return 'start', '0', 'current', '0', 'previous', '0'
  elseif limit.which == BUCKETS then
    return 'start', '0', 'counts', '0'
  end
  return 'tokens', limit.limit_text, 'lastRefill', '0', 'capacity', limit.limit_text
end

-- DEL comes before any other write: a server that is out of memory refuses a script at a first write that needs some.
local function start_new_life(limit, key, state)
  if limit.algorithm.start_new_life then
    return limit.algorithm.start_new_life(limit, state)
  end
  local catch_up_us = math.max(0, state.at - now)
  if limit.which ~= LOG then
    local reset_at = math.max(state.at, reset_time_of(key))
    redis.call('DEL', key)
    redis.call('HSET', key, 'reset', text_of(reset_at), unused_fields(limit))
    expire_after(key, catch_up_us + (limit.keep_us or 2 * limit.window_us))
    return
  end
  redis.call('DEL', key)
  if not state.is_forgotten and state.last_us > state.at - limit.window_us then
    redis.call('ZADD', key, text_of(state.at), string.format('%013d', 0))
    expire_after(key, catch_up_us + limit.window_us)
  end
end
