import { expect, test } from '@jest/globals';
import { OpenReplays } from '../incremental/open-replays.ts';
import { JournalReplayer } from './journal-replayer.ts';

test('advancing an update waits for no compaction that has its replay in use', async () => {
  const openReplays = new OpenReplays();
  const replayer = new JournalReplayer({ openReplays } as unknown as ConstructorParameters<typeof JournalReplayer>[0]);
  const upload = Promise.withResolvers<void>();
  const compaction = openReplays.use('a', async () => {
    await upload.promise;
    return { result: 'compacted', keep: null };
  });
  await replayer.advance('a');
  upload.resolve();
  expect(await compaction).toBe('compacted');
  openReplays.close();
});
