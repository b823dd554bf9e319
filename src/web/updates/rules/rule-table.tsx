import { type ReactNode, useEffect, useRef } from 'react';
import type { Rule } from '../../platform/app/contract.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { describeSettings, nameOfKind } from './rule-labels.ts';
import styles from './rules.module.css';

/** Limits and guards: what they say, and for which stacks. */
export function RuleTable({
  chosen,
  empty,
  label,
  onEdit,
  onRemove,
  ...list
}: {
  readonly label: string;
  readonly items: readonly Rule[] | undefined;
  readonly hasMore: boolean;
  readonly isBusy: boolean;
  readonly onMore: () => void;
  readonly chosen: string | undefined;
  readonly onEdit: (rule: Rule) => void;
  readonly onRemove: (rule: Rule) => void;
  readonly empty: ReactNode;
}) {
  const columns: Column<Rule>[] = [
    {
      name: 'Rule',
      isTitle: true,
      cell: (rule) => (
        <span>
          {nameOfKind(rule.kind)}
          <ChosenMark rule={rule} chosen={chosen} />
        </span>
      ),
    },
    { name: 'For', cell: ({ scope }) => <span className={styles['scope']}>{scope}</span> },
    {
      name: 'Says',
      cell: ({ kind, note, settings }) => (
        <div className={styles['says']}>
          {describeSettings(kind, settings)}
          {note === '' ? null : <span className={styles['note']}>{note}</span>}
        </div>
      ),
    },
    { name: 'Set', isMinor: true, cell: (rule) => <SetBy rule={rule} /> },
    {
      name: 'Actions',
      isActions: true,
      cell: (rule) => (
        <span className={styles['buttons']}>
          <Button
            size="small"
            kind="quiet"
            aria-label={`Change ${nameOfKind(rule.kind)} of ${rule.scope}`}
            onClick={() => onEdit(rule)}
          >
            Change
          </Button>
          <Button
            size="small"
            kind="quiet"
            aria-label={`Remove ${nameOfKind(rule.kind)} of ${rule.scope}`}
            onClick={() => onRemove(rule)}
          >
            Remove
          </Button>
        </span>
      ),
    },
  ];
  return (
    <Table
      {...list}
      label={label}
      columns={columns}
      keyOf={({ id }) => id}
      empty={<div className={styles['none']}>{empty}</div>}
    />
  );
}

/** Who has set a rule, and when. */
export function SetBy({ rule: { setAt, setBy } }: { readonly rule: Rule }) {
  return (
    <span className={styles['set']}>
      {setBy ?? 'an operator'}, <Time at={setAt} />
    </span>
  );
}

/** Marks the rule that a link has led to, and shows it. */
export function ChosenMark({ chosen, rule }: { readonly rule: Rule; readonly chosen: string | undefined }) {
  const mark = useRef<HTMLSpanElement>(null);
  const isChosen = rule.id === chosen;
  useEffect(() => {
    if (isChosen) mark.current?.scrollIntoView({ block: 'center' });
  }, [isChosen]);
  if (!isChosen) return null;
  return (
    <span ref={mark} className={styles['chosen']}>
      <Badge tone="accent">You came for this</Badge>
    </span>
  );
}
