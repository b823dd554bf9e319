import { shareRules } from './room-rules.ts';

/**
 * The rules of `room-rules.ts` as functions in Lua, name by name; a contract test compares the two on random rooms. `room` is
 * `{capacity, whole, arriving}` with the bytes of whole bodies by share and the arriving bodies, the oldest first. In a body 0 is
 * no `blocked` time, and -1 no `claim` or `limit`.
 */
export const roomRulesScript = `
local timesFree, mostShares, mostLeaving = ${shareRules.timesFree}, ${shareRules.mostShares}, ${shareRules.mostLeaving}

local function totalOf(room, gone)
  local total = 0
  for _, bytes in pairs(room.whole) do total = total + bytes end
  for _, each in ipairs(room.arriving) do
    if not gone[each] then total = total + each.held end
  end
  return total
end

local function usedByShare(room, gone)
  local used = {}
  for share, bytes in pairs(room.whole) do used[share] = bytes end
  for _, each in ipairs(room.arriving) do
    if each.held > 0 and not gone[each] then used[each.share] = (used[each.share] or 0) + each.held end
  end
  return used
end

local function fairPart(room, body)
  local shares, count = { [body.share] = true }, 1
  local function add(share)
    if not shares[share] then
      shares[share] = true
      count = count + 1
    end
  end
  for share in pairs(room.whole) do add(share) end
  for _, each in ipairs(room.arriving) do add(each.share) end
  return room.capacity / math.min(count, mostShares)
end

local function needOf(room, body, bytes)
  if body.held > 0 then return bytes end
  return math.min(math.max(body.claim, bytes), room.capacity)
end

local function isOverLimit(room, body, bytes, gone)
  if body.limit < 0 or (body.held > 0 and body.claim >= 0) then return false end
  local used = room.whole[body.share] or 0
  for _, each in ipairs(room.arriving) do
    if each == body and body.held > 0 then break end
    if each ~= body and each.held > 0 and each.share == body.share and not gone[each] then
      used = used + math.max(each.held, math.min(each.claim, room.capacity))
    end
  end
  return used > 0 and used + body.held + needOf(room, body, bytes) > body.limit
end

local function claimedBy(room, body, gone)
  local claimed = room.whole[body.share] or 0
  for _, each in ipairs(room.arriving) do
    if each ~= body and each.held > 0 and each.share == body.share and not gone[each] then
      claimed = claimed + math.max(each.held, math.min(each.claim, room.capacity))
    end
  end
  return claimed
end

local function isOverPart(room, body, bytes, gone)
  local claimed = claimedBy(room, body, gone)
  if claimed == 0 then return false end
  local used = usedByShare(room, gone)[body.share] or 0
  local need = needOf(room, body, bytes)
  return claimed + need > timesFree * (room.capacity - totalOf(room, gone) + used - claimed - need)
end

local function standsBack(room, body, gone)
  return body.held == 0 and (isOverPart(room, body, 1, gone) or isOverLimit(room, body, 1, gone))
end

local function canAllEnd(room, body, bytes, gone)
  local after, held = {}, 0
  for _, each in ipairs(room.arriving) do
    local has = each.held
    if each == body then has = has + bytes end
    if has > 0 and not gone[each] then
      after[#after + 1] = { held = has, need = math.max(math.min(math.max(each.claim, 0), room.capacity) - has, 0) }
      held = held + has
    end
  end
  table.sort(after, function(one, other) return one.need < other.need end)
  local free = room.capacity - held
  for _, each in ipairs(after) do
    if each.need > free then return false end
    free = free + each.held
  end
  return true
end

local function mayTake(room, body, bytes, gone)
  local others = totalOf(room, gone) - body.held
  if others == 0 then return true end
  if others + body.held + bytes > room.capacity then return false end
  if isOverLimit(room, body, bytes, gone) then return false end
  if body.held == 0 then
    if isOverPart(room, body, bytes, gone) then return false end
    for _, each in ipairs(room.arriving) do
      if not gone[each] and not standsBack(room, each, gone) then
        if each ~= body and each.blocked > 0 then return false end
        break
      end
    end
    if others + needOf(room, body, bytes) > room.capacity then return false end
  end
  return canAllEnd(room, body, bytes, gone)
end

local function mayWait(room, body, bytes)
  local nobody = {}
  if isOverLimit(room, body, bytes, nobody) then return true end
  local used, part = usedByShare(room, nobody), fairPart(room, body)
  if claimedBy(room, body, nobody) > (used[body.share] or 0) then return true end
  if (used[body.share] or 0) + needOf(room, body, bytes) > part then return false end
  for _, each in ipairs(room.arriving) do
    if each ~= body and each.held > 0 and (each.stalled or each.leaves) then return true end
  end
  for share, bytesUsed in pairs(used) do
    if share ~= body.share and bytesUsed > part then return true end
  end
  return false
end

local function nextToLeave(room, body, bytes, gone, waited, withYielding, withOthers)
  local function youngest(accepts)
    local yielding, other
    for _, each in ipairs(room.arriving) do
      if each ~= body and each.held > 0 and not gone[each] and accepts(each) then
        if each.yields then yielding = each else other = each end
      end
    end
    local found = yielding or other
    if found and waited >= (found.yields and withYielding or withOthers) then return found end
  end

  local stalled
  for _, each in ipairs(room.arriving) do
    if each ~= body and each.held > 0 and not gone[each] and each.stalled then
      if not stalled or each.held >= stalled.held then stalled = each end
    end
  end
  if stalled then return stalled end

  local used, part = usedByShare(room, gone), fairPart(room, body)
  if (used[body.share] or 0) + needOf(room, body, bytes) <= part then
    local function isAbove(each)
      return each.share ~= body.share and (used[each.share] or 0) > part
        and (each ~= room.arriving[1] or each.claim < 0)
    end
    local most = -1
    for _, each in ipairs(room.arriving) do
      if each ~= body and each.held > 0 and not gone[each] and isAbove(each) then
        most = math.max(most, used[each.share])
      end
    end
    local found = youngest(function(each) return isAbove(each) and used[each.share] == most end)
    if found then return found end
  end
  if body == room.arriving[1] then return youngest(function() return true end) end
  if body.yields then return end
  local comesFirst = body.held > 0
  if not comesFirst then
    for _, each in ipairs(room.arriving) do
      if not each.yields then
        comesFirst = each == body
        break
      end
    end
  end
  if comesFirst then return youngest(function(each) return each.yields end) end
end

local function whoGivesWay(room, body, bytes, now, withYielding, withOthers)
  if body.blocked == 0 then return {} end
  local gone, chosen = {}, {}
  for _, each in ipairs(room.arriving) do
    if each.leaves and each ~= body then gone[each] = true end
  end
  if mayTake(room, body, bytes, gone) then return {} end
  while #chosen < mostLeaving do
    local found = nextToLeave(room, body, bytes, gone, now - body.blocked, withYielding, withOthers)
    if not found then return {} end
    gone[found] = true
    chosen[#chosen + 1] = found
    if mayTake(room, body, bytes, gone) then return chosen end
  end
  return chosen
end
`;
