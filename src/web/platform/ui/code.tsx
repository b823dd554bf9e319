import { Check, Copy } from 'lucide-react';
import { useState } from 'react';
import { Button } from './button.tsx';
import styles from './code.module.css';
import { copyText } from './copy-text.ts';
import { copyTexts } from './texts.tsx';

/** A command or a value, with a button that copies it. */
export function Code({ children }: { readonly children: string }) {
  return (
    <div className={styles['code']}>
      <pre tabIndex={-1}>{children}</pre>
      <CopyButton text={children} />
    </div>
  );
}

export function CopyButton({ label = copyTexts.copy, text }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setIsCopied] = useState<boolean | null>(null);
  const copy = async (button: HTMLElement): Promise<void> => {
    const copied = await copyText(text, button);
    setIsCopied(copied);
    if (copied) setTimeout(() => setIsCopied(null), 1500);
  };
  return (
    <>
      {isCopied === false ? <span role="alert">{copyTexts.refused}</span> : null}
      <Button
        kind="quiet"
        size="icon"
        aria-label={isCopied === true ? copyTexts.copied : label}
        title={label}
        onClick={({ currentTarget }) => void copy(currentTarget)}
      >
        {isCopied === true ? <Check size={15} /> : <Copy size={15} />}
      </Button>
    </>
  );
}
