-- reset.lua: forget what was used. A key that holds something Headgate did not write is left alone.
-- KEYS[i]    state of check i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2..]  limits as in decide.lua; then for each key: which limit
-- returns    how many were forgotten

-- @include clock
-- @include checks

local limits = read_limits()
local forgotten = 0
for _, key in ipairs(KEYS) do
  local limit = limits[next_number()]
  if limit.algorithm.load(key, limit) then
    forgotten = forgotten + redis.call('UNLINK', key)
  end
end
return forgotten
