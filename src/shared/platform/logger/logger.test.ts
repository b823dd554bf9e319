import { expect, test } from '@jest/globals';
import { createLogger } from './logger.ts';

function logged(level: string, work: (log: ReturnType<typeof createLogger>) => void): { level: string; msg: string }[] {
  const lines: string[] = [];
  work(createLogger({ level }, { write: (line) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as { level: string; msg: string });
}

test('a client that leaves before the end of a response is no error', () => {
  const leave = (log: ReturnType<typeof createLogger>): void =>
    log.child({ reqId: 'a' }).error(new Error('premature close'));
  expect(logged('info', leave)).toEqual([]);
  expect(logged('debug', leave)).toMatchObject([{ level: 'debug', msg: 'premature close' }]);
});

test('other errors are logged as they are', () => {
  const fail = (log: ReturnType<typeof createLogger>): void => {
    log.error(new Error('disk full'));
    log.error({ err: new Error('premature close') }, 'export failed');
  };
  expect(logged('info', fail)).toMatchObject([
    { level: 'error', msg: 'disk full' },
    { level: 'error', msg: 'export failed' },
  ]);
});
