import { Check, Copy } from 'lucide-react';
import { Button } from './button.tsx';
import styles from './code.module.css';
import { useCopied } from './copy-text.ts';
import { copyTexts } from './texts.tsx';

export function Code({ children }: { readonly children: string }) {
  return (
    <div className={styles['code']}>
      <pre tabIndex={-1}>{children}</pre>
      <CopyButton text={children} />
    </div>
  );
}

export function CopyButton({ label = copyTexts.copy, text }: { readonly text: string; readonly label?: string }) {
  const [isCopied, copy] = useCopied();
  return (
    <>
      {isCopied === false ? <span role="alert">{copyTexts.refused}</span> : null}
      <Button
        kind="quiet"
        size="icon"
        aria-label={isCopied === true ? copyTexts.copied : label}
        title={label}
        onClick={({ currentTarget }) => void copy(text, currentTarget)}
      >
        {isCopied === true ? <Check size={15} /> : <Copy size={15} />}
      </Button>
    </>
  );
}
