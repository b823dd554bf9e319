import type { StoredEvent } from './event-segments.ts';

export async function textOf({ text }: StoredEvent): Promise<string> {
  if (typeof text !== 'function') return text.toString();
  const parts: Buffer[] = [];
  for await (const part of text()) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString();
}
