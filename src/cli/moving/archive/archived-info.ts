import { type HistoryInfo, storable, withRequester } from '../../../shared/diy/history-info.ts';
import type { ArchivedUpdate } from './archive-layout.ts';

/** An update of an archive as other sources have theirs. Who requested it becomes a member of the environment. */
export function infoOf(update: ArchivedUpdate): HistoryInfo {
  const { config, endedAt, environment, kind, message, requestedBy, resourceChanges, startedAt, status } = update;
  return {
    ...{ kind, message: storable(message), config: storable(config), resourceChanges: storable(resourceChanges) },
    result: status,
    ...{ startTime: Date.parse(startedAt) / 1000, endTime: Date.parse(endedAt) / 1000 },
    environment: withRequester(environment, requestedBy),
  };
}
