import { createInterface } from 'node:readline';
import { DataDirClaim } from '../../src/shared/platform/claim/data-dir-claim.ts';
import { takeFileLock } from '../../src/shared/platform/claim/file-lock.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';

// Claims a directory for each line of JSON on stdin, and answers `won`, or why not.

const logger = createLogger({ level: 'silent' });
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const { directory, locks, watchMs } = JSON.parse(line) as { directory: string; locks: boolean; watchMs: number };
  const takeLock = locks ? takeFileLock : () => 'unsupported' as const;
  await DataDirClaim.acquire(directory, { logger, takeLock, watchMs, beatMs: 50 }).then(
    () => console.log('won'),
    (error: Error) => console.log(`${error.name}: ${error.message}`),
  );
}
