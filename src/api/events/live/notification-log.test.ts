import { expect, test } from '@jest/globals';
import type { Notification } from '../../../shared/events/live/notification.ts';
import { NotificationLog } from './notification-log.ts';

const notification: Notification = { kind: 'stack.changed', organizationId: null, stackId: null, updateId: null };

function filled(log: NotificationLog, from: number, to: number): NotificationLog {
  for (let n = from; n <= to; n++) log.add({ id: `p.${n}.0`, notification });
  return log;
}

const idsAfter = (log: NotificationLog, id: string): string[] | undefined => log.after(id)?.map((entry) => entry.id);

test('replays the entries after an id, and nothing after the last one', () => {
  const log = new NotificationLog(10);
  const start = log.position;
  filled(log, 1, 3);
  expect(idsAfter(log, start)).toEqual(['p.1.0', 'p.2.0', 'p.3.0']);
  expect(idsAfter(log, 'p.1.0')).toEqual(['p.2.0', 'p.3.0']);
  expect(log.position).toBe('p.3.0');
  expect(idsAfter(log, 'p.3.0')).toEqual([]);
  expect(log.after('p.4.0')).toBeNull();
});

test('drops the oldest entries, but keeps the minimum number', () => {
  const log = new NotificationLog(10);
  const start = log.position;
  for (let n = 1; n <= 95; n++) {
    filled(log, n, n);
    for (let back = 0; back < Math.min(n, 10); back++) expect(log.after(`p.${n - back}.0`)).toHaveLength(back);
  }
  expect(log.after(start)).toBeNull();
  expect(log.after('p.50.0')).toBeNull();
  // The last dropped entry is still a valid position.
  expect(idsAfter(log, 'p.80.0')).toHaveLength(15);
});

test('rejects ids from before it was cleared, and of other logs', () => {
  const log = filled(new NotificationLog(10), 1, 3);
  log.clear();
  expect(log.after('p.3.0')).toBeNull();
  expect(idsAfter(log, log.position)).toEqual([]);
  expect(new NotificationLog(10).after(log.position)).toBeNull();
});
