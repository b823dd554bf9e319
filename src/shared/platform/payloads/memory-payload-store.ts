import { arriving } from './arriving-body.ts';
import { MemoryRoom } from './memory-room.ts';
import { PayloadMissingError, type PayloadOptions, type PayloadStore, type RoomSizes } from './payload-store.ts';
import { defaultRoomTimes, type RoomName, type RoomTimes } from './room-rules.ts';

/** Payload store within one process. Bodies stay in memory; writes and imports have separate rooms. */
export class MemoryPayloadStore implements PayloadStore {
  readonly #bodies = new Map<string, { chunks: Buffer[]; bytes: number; room: MemoryRoom; fairnessKey: string }>();
  readonly #rooms: Readonly<Record<RoomName, MemoryRoom>>;
  readonly #sizes: RoomSizes;

  constructor(sizes: RoomSizes, times: RoomTimes = defaultRoomTimes) {
    this.#sizes = sizes;
    this.#rooms = { writes: new MemoryRoom(sizes.writes, times), imports: new MemoryRoom(sizes.imports, times) };
  }

  async put(key: string, body: AsyncIterable<Buffer>, options: PayloadOptions): Promise<{ bytes: number; seal: null }> {
    const room = this.#rooms[options.room];
    const place = room.enter({
      claim: options.declaredBytes,
      waits: options.room === 'imports',
      fairnessKey: options.fairnessKey ?? '',
      keyLimit: options.keyLimit ?? null,
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of arriving(body, place, options, this.#sizes[options.room])) {
        chunks.push(chunk);
        bytes += chunk.length;
      }
    } catch (error) {
      room.leave(place);
      throw error;
    }
    room.keep(place, bytes);
    this.#bodies.set(key, { chunks, bytes, room, fairnessKey: place.fairnessKey });
    return { bytes, seal: null };
  }

  async *open(key: string): AsyncGenerator<Buffer> {
    const body = this.#bodies.get(key);
    if (!body) throw new PayloadMissingError();
    yield* body.chunks;
  }

  async delete(key: string): Promise<void> {
    const body = this.#bodies.get(key);
    if (!body) return;
    this.#bodies.delete(key);
    body.room.release(body.bytes, body.fairnessKey);
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {}

  async heldByKey(room: RoomName): Promise<ReadonlyMap<string, number>> {
    return this.#rooms[room].heldByKey;
  }

  bytesHeld(): number {
    return this.#rooms.writes.used + this.#rooms.imports.used;
  }
}
