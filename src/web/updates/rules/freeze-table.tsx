import { CalendarClock, Snowflake, Sun } from 'lucide-react';
import type { ReactNode } from 'react';
import type { Rule } from '../../platform/app/contract.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { ChosenMark, SetBy } from './rule-table.tsx';
import { describeWindow, type FreezeWindow } from './rule-labels.ts';
import styles from './rules.module.css';
import { NextWindows } from './window-times.tsx';

/** Freezes: for what, until when, and who has set them. */
export function FreezeTable({
  chosen,
  empty,
  onEdit,
  onThaw,
  ...list
}: {
  readonly items: readonly Rule[] | undefined;
  readonly hasMore: boolean;
  readonly isBusy: boolean;
  readonly onMore: () => void;
  readonly chosen: string | undefined;
  readonly onEdit: (rule: Rule) => void;
  readonly onThaw: (rule: Rule) => void;
  readonly empty: ReactNode;
}) {
  const columns: Column<Rule>[] = [
    {
      name: 'For',
      isTitle: true,
      cell: (rule) => (
        <span className={styles['scope']}>
          {rule.scope}
          <ChosenMark rule={rule} chosen={chosen} />
        </span>
      ),
    },
    { name: 'State', cell: (rule) => <FreezeState rule={rule} /> },
    { name: 'Note', cell: ({ note }) => (note === '' ? <span className={styles['none']}>none</span> : note) },
    { name: 'Set', isMinor: true, cell: (rule) => <SetBy rule={rule} /> },
    {
      name: 'Actions',
      isActions: true,
      cell: (rule) => (
        <span className={styles['buttons']}>
          <Button
            size="small"
            kind="quiet"
            aria-label={`Change the freeze of ${rule.scope}`}
            onClick={() => onEdit(rule)}
          >
            Change
          </Button>
          <Button size="small" aria-label={`Thaw ${rule.scope}`} onClick={() => onThaw(rule)}>
            Thaw
          </Button>
        </span>
      ),
    },
  ];
  return (
    <Table
      {...list}
      items={list.items && inOrder(list.items)}
      label="Freezes"
      columns={columns}
      keyOf={({ id }) => id}
      empty={empty}
      details={({ freeze, settings }) => {
        const windows = settings['windows'] as readonly FreezeWindow[] | undefined;
        if (windows === undefined || freeze === null) return null;
        return (
          <div className={styles['windows']}>
            <ul>
              {windows.map((window) => (
                <li key={JSON.stringify(window)}>{describeWindow(window)}</li>
              ))}
            </ul>
            <NextWindows freeze={freeze} isStateShown={false} />
          </div>
        );
      }}
    />
  );
}

/** Those in force first, then those to come. */
function inOrder(freezes: readonly Rule[]): Rule[] {
  const place = ({ freeze }: Rule): number => (freeze?.inForce != null ? 0 : freeze?.next.length ? 1 : 2);
  return [...freezes].sort((one, other) => place(one) - place(other));
}

function FreezeState({ rule: { freeze, settings } }: { readonly rule: Rule }) {
  const waits = settings['mode'] === 'wait' ? ', updates wait' : '';
  if (freeze?.inForce != null) {
    const { until } = freeze.inForce;
    return (
      <span className={styles['state']}>
        <Badge tone="running" icon={<Snowflake aria-hidden="true" />}>
          In force
        </Badge>
        <span>
          {until === null ? 'until somebody thaws' : 'ends '}
          {until === null ? null : <Time at={until} />}
          {waits}
        </span>
      </span>
    );
  }
  const [next] = freeze?.next ?? [];
  if (next === undefined)
    return (
      <Badge tone="neutral" icon={<Sun aria-hidden="true" />}>
        Over
      </Badge>
    );
  return (
    <span className={styles['state']}>
      <Badge tone="neutral" icon={<CalendarClock aria-hidden="true" />}>
        Planned
      </Badge>
      <span>
        begins <Time at={next.from} />
        {waits}
      </span>
    </span>
  );
}
