import { CircleX, Info, TriangleAlert } from 'lucide-react';
import { useState } from 'react';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { Button } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { Colored } from './colored.tsx';
import styles from './message-list.module.css';
import type { Diagnostic } from './update-progress.ts';
import type { LiveProgress } from './use-update.ts';

const icons = { debug: Info, info: Info, warning: TriangleAlert, error: CircleX } as const;
const labels = { debug: 'Debug', info: 'Note', warning: 'Warning', error: 'Error' } as const;
const pageSize = 200;

/** All messages of an update by resource, with messages of the program and the engine first. */
export function MessageList({ live }: { readonly live: LiveProgress }) {
  const { progress } = live.feed;
  const [shownCount, setShownCount] = useState(pageSize);
  const groups: { urn: string | null; type: string; diagnostics: readonly Diagnostic[] }[] = [
    { urn: null, type: '', diagnostics: progress.diagnostics },
    ...[...progress.rows.values()].map(({ diagnostics, type, urn }) => ({ urn, type, diagnostics })),
  ].filter(({ diagnostics }) => diagnostics.length > 0);
  if (groups.length === 0) {
    return (
      <Empty title={live.feed.isCaughtUp ? 'No messages' : 'Reading the messages…'}>
        <p>Errors, warnings and the output of the program appear here, by resource.</p>
      </Empty>
    );
  }
  const shown = groups.slice(0, shownCount);
  return (
    <div className={styles['groups']}>
      {shown.map(({ diagnostics, type, urn }) => (
        <section key={urn ?? ''} className={styles['group']}>
          <h2 className={styles['title']} title={urn ?? undefined}>
            {urn === null ? (
              'Engine and program'
            ) : (
              <>
                <code>{nameInUrn(urn)}</code> <span className={styles['type']}>{shortType(type)}</span>
              </>
            )}
          </h2>
          <ul className={styles['list']}>
            {diagnostics.map((diagnostic) => (
              <Message key={diagnostic.sequence} diagnostic={diagnostic} />
            ))}
          </ul>
        </section>
      ))}
      {groups.length > shownCount ? (
        <Button className={styles['more']} onClick={() => setShownCount(shownCount + pageSize)}>
          Show more of {groups.length.toLocaleString('en')} resources
        </Button>
      ) : null}
    </div>
  );
}

function Message({ diagnostic }: { readonly diagnostic: Diagnostic }) {
  const { message, policy, severity } = diagnostic;
  const Icon = icons[severity];
  return (
    <li className={`${styles['message']} ${styles[severity]}`}>
      <span className={styles['icon']} title={labels[severity]}>
        <Icon size={15} aria-hidden="true" />
        <span className="unseen">{labels[severity]}</span>
      </span>
      <div className={styles['body']}>
        {policy === null ? null : (
          <p className={styles['policy']}>
            Policy <code>{policy.name}</code> of <code>{policy.pack}</code>
            {policy.isMandatory ? ', mandatory' : ', advisory'}
          </p>
        )}
        <pre className={styles['text']}>
          <Colored text={message.trimEnd()} />
        </pre>
      </div>
    </li>
  );
}
