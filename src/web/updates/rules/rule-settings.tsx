import { SelectField, TextArea, TextField } from '../../platform/ui/field.tsx';
import { FreezeFields } from './freeze-fields.tsx';
import styles from './rule-dialog.module.css';
import type { SettingsProps } from './rule-draft.ts';
import { ruleSettingsTexts } from './texts.tsx';

export function RuleSettings({ draft, onChange }: SettingsProps) {
  const number = (
    label: string,
    name: 'most' | 'seconds' | 'changes' | 'percent' | 'newest' | 'days' | 'daily' | 'monthly',
    max: number,
    hint?: string,
  ) => (
    <TextField
      label={label}
      type="number"
      min={0}
      max={max}
      step="any"
      value={draft[name]}
      hint={hint}
      onChange={({ target }) => onChange({ [name]: target.value })}
    />
  );
  const choice = (
    label: string,
    name: 'mode' | 'per' | 'by' | 'ownPreview' | 'withoutJournal' | 'approvers',
    options: readonly (readonly [string, string])[],
  ) => (
    <SelectField
      label={label}
      value={draft[name]}
      options={options}
      onChange={({ target }) => onChange({ [name]: target.value })}
    />
  );
  const journal = choice(ruleSettingsTexts.withoutJournal, 'withoutJournal', [
    ['allow', ruleSettingsTexts.areAllowed],
    ['refuse', ruleSettingsTexts.areRefused],
  ]);
  const approvers = choice(ruleSettingsTexts.approvers, 'approvers', [
    ['people', ruleSettingsTexts.people],
    ['tokens', ruleSettingsTexts.peopleAndTokens],
  ]);
  switch (draft.kind) {
    case 'freeze':
      return <FreezeFields draft={draft} onChange={onChange} />;
    case 'concurrency':
      return (
        <div className={styles['pair']}>
          {number(ruleSettingsTexts.most, 'most', 100_000)}
          {choice(ruleSettingsTexts.counted, 'per', [
            ['all', ruleSettingsTexts.together],
            ['user', ruleSettingsTexts.forEachUser],
            ['project', ruleSettingsTexts.forEachProject],
          ])}
        </div>
      );
    case 'lock-wait':
      return number(ruleSettingsTexts.seconds, 'seconds', 86_400, ruleSettingsTexts.noWaitHint);
    case 'wait-alert':
      return number(ruleSettingsTexts.seconds, 'seconds', 86_400, ruleSettingsTexts.alertHint);
    case 'supersede':
      return choice(ruleSettingsTexts.newerCommitOf, 'by', [
        ['branch', ruleSettingsTexts.sameBranch],
        ['pull-request', ruleSettingsTexts.samePullRequest],
        ['nothing', ruleSettingsTexts.nothing],
      ]);
    case 'consumers':
      return choice(ruleSettingsTexts.removingOutputs, 'mode', [
        ['warn', ruleSettingsTexts.getAWarning],
        ['refuse', ruleSettingsTexts.areRefused],
      ]);
    case 'change-limit':
      return (
        <>
          <div className={styles['pair']}>
            {number(ruleSettingsTexts.maximumChanges, 'changes', 100_000)}
            {number(ruleSettingsTexts.percentage, 'percent', 100)}
          </div>
          {approvers}
          {journal}
        </>
      );
    case 'protected-types':
      return (
        <>
          <TextArea
            label={ruleSettingsTexts.typesOfResources}
            hint={ruleSettingsTexts.typesHint}
            placeholder={ruleSettingsTexts.typesExample}
            spellCheck={false}
            value={draft.types}
            onChange={({ target }) => onChange({ types: target.value })}
          />
          {approvers}
          {journal}
        </>
      );
    case 'keep-versions':
      return (
        <>
          <div className={styles['pair']}>
            {number(ruleSettingsTexts.newest, 'newest', 1_000_000)}
            {number(ruleSettingsTexts.lastDays, 'days', 36_500)}
          </div>
          <div className={styles['pair']}>
            {number(ruleSettingsTexts.daily, 'daily', 36_500)}
            {number(ruleSettingsTexts.monthly, 'monthly', 1_200)}
          </div>
        </>
      );
    case 'keep-events':
    case 'keep-previews':
      return number(ruleSettingsTexts.days, 'days', 36_500);
    case 'require-preview':
      return (
        <>
          {choice(ruleSettingsTexts.withoutPreview, 'mode', [
            ['warn', ruleSettingsTexts.usersAreWarned],
            ['refuse', ruleSettingsTexts.updatesAreRefused],
            ['off', ruleSettingsTexts.nothingHappens],
          ])}
          {choice(ruleSettingsTexts.ownPreview, 'ownPreview', [
            ['counts', ruleSettingsTexts.counts],
            ['ignored', ruleSettingsTexts.doesNotCount],
          ])}
          {journal}
        </>
      );
  }
}
