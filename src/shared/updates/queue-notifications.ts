import type { Database } from '../platform/db/database.ts';
import type { NotificationChannel } from '../platform/db/notification-channel.ts';
import { outsideCalls } from '../platform/lifecycle/outside-calls.ts';
import type { Logger } from '../platform/logger/logger.ts';
import { updateQueueChannel } from './update-queue-repository.ts';

/**
 * Notifies the waiting calls of all replicas of this process's commits. A notification that cannot be sent is lost: waiting calls also
 * check from time to time.
 */
export function sendQueueNotifications(db: Database, channel: NotificationChannel, logger: Logger): void {
  const raised = new Set<string>();
  let isSending = false;
  const sendAll = async (): Promise<void> => {
    isSending = true;
    while (raised.size > 0) {
      const payloads = [...raised];
      raised.clear();
      await channel.send(payloads, updateQueueChannel).catch((error: unknown) => {
        logger.debug({ err: error }, 'update queue: notifications could not be sent');
      });
    }
    isSending = false;
  };
  db.onRaised(({ detail, message }) => {
    if (message !== updateQueueChannel) return;
    raised.add(detail);
    if (!isSending) void outsideCalls(sendAll);
  });
}
