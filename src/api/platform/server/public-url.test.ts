import { expect, test } from '@jest/globals';
import { createLogger } from '../../../shared/platform/logger/logger.ts';
import { warnAboutPlainHttp } from './public-url.ts';

function warnings(publicUrl: string): number {
  const lines: string[] = [];
  warnAboutPlainHttp({ publicUrl }, createLogger({ level: 'info' }, { write: (line) => void lines.push(line) }));
  return lines.length;
}

test.each([
  'http://localhost:9090',
  'http://127.0.0.1:9090',
  'http://[::1]:9090',
  'http://10.1.2.3',
  'http://172.31.0.1:9090',
  'http://192.168.1.5',
  'http://[fd00::5]:9090',
  'http://holdfast:9090',
  'http://holdfast.internal',
  'https://state.example.com',
  'https://203.0.113.5',
])('%s logs no warning', (url) => expect(warnings(url)).toBe(0));

test.each(['http://state.example.com', 'http://203.0.113.5:9090', 'http://172.32.0.1', 'http://[2001:db8::1]:9090'])(
  '%s logs a warning',
  (url) => expect(warnings(url)).toBe(1),
);
