import { expect, test } from '@jest/globals';
import { fullest } from './queue-monitor.ts';

const info = (used: number, limit: number): string =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_human:1M\r\nmaxmemory:${limit}\r\nmaxmemory_human:2M\r\n`;

test.each([
  ['one server', [info(50, 100)], [50, 100]],
  ['the fullest master of a cluster', [info(5, 100), info(95, 100), info(50, 100)], [95, 100]],
  ['one with a limit before one without', [info(900, 0), info(5, 100)], [5, 100]],
  ['the largest without limits', [info(5, 0), info(90, 0)], [90, 0]],
  ['nothing', [], [0, 0]],
])('the memory of Redis is that of %s', (_, infos, [memoryBytes, memoryLimitBytes]) => {
  expect(fullest(infos)).toEqual({ memoryBytes, memoryLimitBytes });
});
