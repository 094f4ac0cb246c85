-- reset.lua: forget what was used. A key of a type that Headgate does not write there is left alone.
-- KEYS[i]    state of check i; all in one hash slot on a cluster
-- ARGV[i]    its type: 'zset' or 'hash'
-- returns    how many were forgotten

local forgotten = 0
for index, key in ipairs(KEYS) do
  if redis.call('TYPE', key).ok == ARGV[index] then
    forgotten = forgotten + redis.call('UNLINK', key)
  end
end
return forgotten
