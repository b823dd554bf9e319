import { expect, test } from '@jest/globals';
import { pino } from 'pino';
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

test('secrets are redacted wherever a line has them, and other values are written as they are', () => {
  const text = 'a "quoted"\n\u2028 token';
  const fields = { text, count: 3, isOn: true, none: null, body: { token: 'hf-secret', name: 'ada' } };
  const [line, nested, child] = logged('info', (log) => {
    log.info(fields, text);
    log.info({
      headers: { authorization: 'token hf-secret', accept: '*/*' },
      req: { headers: { authorization: 'token hf-secret' } },
      config: { secrets: { masterKeys: 'hf-secret' } },
      many: 10n,
    });
    log.child({ reqId: text }).info({ login: { password: 'hf-secret' }, text });
  });
  expect(line).toMatchObject({ ...fields, body: { token: '[redacted]', name: 'ada' }, msg: text });
  expect(nested).toMatchObject({
    headers: { authorization: '[redacted]', accept: '*/*' },
    req: { headers: { authorization: '[redacted]' } },
    config: { secrets: '[redacted]' },
  });
  expect(child).toMatchObject({ reqId: text, login: { password: '[redacted]' }, text });
});

test('this release of pino has what the redaction of single values replaces', () => {
  const { stringifiersSym, wildcardFirstSym } = pino.symbols;
  const logger = createLogger({ level: 'info' }, { write: () => {} });
  expect(logger).toHaveProperty([stringifiersSym, wildcardFirstSym] as unknown as string[], expect.any(Function));
});
