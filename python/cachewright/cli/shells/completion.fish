
# Values of options, keys after --set and --vary, papers and figures; all else as above.
function __cachewright_list
    # The values $argv, behind those of a list that are there already.
    set -l word (commandline -ct)
    set -l word (string replace -r -- '^--[^=]*=' '' $word)
    set -l head (string match -r -- '^.*[,=]' $word)
    for value in $argv
        echo "$head$value"
    end
end

function __cachewright_keys
    set -l word (string replace -r -- '^--[^=]*=' '' (commandline -ct))
    if not string match -q -- '*=*' $word
        string split ' ' -- '@KEYS@'
        return
    end
    set -l found
    switch (string split -m1 = -- $word)[1]
@VALUES@
    end
    __cachewright_list $found
end

function __cachewright_after
    # Whether the words before the cursor are exactly these.
    set -l words (commandline -opc)
    test "$words[2..-1]" = "$argv"
end

@OPTIONS@
@PAPERS@
