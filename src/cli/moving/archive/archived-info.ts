import { TransferError } from '../../../shared/diy/diy-layout.ts';
import { type HistoryInfo, storable, withRequester } from '../../../shared/diy/history-info.ts';
import { changeCounts } from '../../../shared/updates/change-counts.ts';
import type { ArchivedUpdate } from './archive-layout.ts';

/**
 * An update of an archive in the form of other sources. Its requester becomes part of the environment. Throws TransferError and
 * SyntaxError.
 */
export function infoOf(update: ArchivedUpdate): HistoryInfo {
  const { config, endedAt, environment, kind, message, requestedBy, resourceChanges, startedAt, status, version } =
    update;
  // Invalid JSON would otherwise fail only when the stack is committed.
  JSON.parse(environment);
  return {
    ...{
      kind,
      message: storable(message),
      config: storable(config),
      resourceChanges: changeCounts(JSON.parse(resourceChanges)),
    },
    ...{ result: status, version },
    ...{ startTime: secondsOf(startedAt), endTime: secondsOf(endedAt) },
    environment: withRequester(environment, requestedBy),
  };
}

function secondsOf(text: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new TransferError(`${JSON.stringify(text)} is no time`);
  return ms / 1000;
}
