import { Ban, CircleAlert, CircleCheck, CircleDashed, LoaderCircle, Waves } from 'lucide-react';
import type { StackItem } from '../platform/app/procedure-types.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Since } from '../platform/ui/time.tsx';
import styles from './stack-status.module.css';
import { stackStatusTexts } from './texts.tsx';

const running: Readonly<Record<string, string>> = stackStatusTexts.running;
const done: Readonly<Record<string, string>> = stackStatusTexts.done;
const names: Readonly<Record<string, string>> = stackStatusTexts.names;

/** The running update of a stack, its owner and start; otherwise the result of the last update. */
export function StackStatus({ active, lastUpdate, waiting }: Pick<StackItem, 'active' | 'lastUpdate' | 'waiting'>) {
  if (active)
    return (
      <span className={styles['status']}>
        <Badge tone="running" icon={<LoaderCircle className={styles['turning']} aria-hidden="true" />}>
          {running[active.kind] ?? stackStatusTexts.runningKind(active.kind)}
        </Badge>
        <span className={styles['who']}>
          {active.by}
          {active.by !== null && active.since !== null ? ', ' : null}
          {active.since === null ? null : <Since at={active.since} />}
        </span>
        {waiting > 0 ? (
          <span className={styles['waiting']} title={stackStatusTexts.waitingForStack(waiting)}>
            +{waiting}
            <span className="unseen"> {stackStatusTexts.waiting}</span>
          </span>
        ) : null}
      </span>
    );
  if (!lastUpdate)
    return (
      <Badge isSoft={false} icon={<CircleDashed aria-hidden="true" />}>
        {stackStatusTexts.neverUpdated}
      </Badge>
    );
  return (
    <span className={styles['status']}>
      <Outcome {...lastUpdate} />
      {lastUpdate.by === null ? null : <span className={styles['who']}>{lastUpdate.by}</span>}
    </span>
  );
}

function Outcome({ kind, result }: { readonly kind: string; readonly result: string }) {
  const name = names[kind] ?? kind;
  if (result === 'failed')
    return (
      <Badge tone="failure" icon={<CircleAlert aria-hidden="true" />}>
        {stackStatusTexts.failed(name)}
      </Badge>
    );
  const isGood = result === 'succeeded';
  return (
    <Badge isSoft={false} icon={isGood ? <CircleCheck className={styles['good']} /> : <Ban />}>
      {isGood ? (done[kind] ?? name) : stackStatusTexts.ended(name, result)}
    </Badge>
  );
}

/** Nothing is shown if the drift is unknown. */
export function DriftBadge({ drift }: Pick<StackItem, 'drift'>) {
  if (drift !== 'drifted') return null;
  return (
    <Badge tone="warning" icon={<Waves aria-hidden="true" />} title={stackStatusTexts.driftedWhy}>
      {stackStatusTexts.drifted}
    </Badge>
  );
}
