import { parentPort } from 'node:worker_threads';
import { JournalReplayError } from '../rules/replay-error.ts';
import { type ReplayReply, type ReplayRequest, type ReplayStep, transferable } from './replay-messages.ts';
import { DamagedStartError, ReplayWork } from './replay-work.ts';

/** Started by ThreadedReplayRunner. Runs the steps that it receives, one after another. */
const port = parentPort;
if (!port) throw new Error('This file must be run as a worker thread');

const works = new Map<number, ReplayWork>();

port.on('message', ({ call, replay, step }: ReplayRequest) => {
  const send = (reply: ReplayReply, transfer: ArrayBuffer[] = []): void => port.postMessage(reply, transfer);
  try {
    const { result, bytes } = run(replay, step);
    send({ call, result }, transferable(bytes));
  } catch (error) {
    if (error instanceof JournalReplayError) send({ call, invalid: error.message });
    else if (error instanceof DamagedStartError) send({ call, damaged: { part: error.part, message: error.message } });
    else send({ call, fault: error });
  }
});

function run(replay: number, step: ReplayStep): { result: unknown; bytes?: Uint8Array } {
  if (step.name === 'open') {
    const work = new ReplayWork(step.start);
    works.set(replay, work);
    return { result: work.progress };
  }
  if (step.name === 'close') {
    works.delete(replay);
    return { result: null };
  }
  const work = works.get(replay);
  if (!work) throw new Error('The replay was not opened, or is closed');
  switch (step.name) {
    case 'progress':
      return { result: work.progress };
    case 'apply':
      return { result: work.apply(step.page) };
    case 'write': {
      const result = work.write(step.manifest);
      return { result, bytes: result.document };
    }
    case 'encode': {
      const result = work.encode(step.manifest);
      return { result, bytes: result.document.bytes };
    }
    case 'snapshot': {
      const result = work.snapshot();
      return { result, bytes: result.bytes };
    }
  }
}
